import { join } from 'node:path';
import type { Wheel } from './package-index.ts';
import { commands } from './pages.ts';

/** Folder of the example whose agent needs packages. */
export const PYTHON_EXAMPLE = join(import.meta.dirname, '..', '..', 'examples', 'python-agent');

/** A `berth` command of the example's README. */
export interface ExampleCommand {
  args: string[];
  /** Output on stdout, as the README shows it. */
  stdout: string;
}

/** The commands of the example's README in their order, without those of the embedded cluster. */
export function exampleCommands(): ExampleCommand[] {
  return commands('examples/python-agent/README.md').flatMap(({ typed, shown }) => {
    const [, line] = /^npx berth (?!local)(.*)$/.exec(typed) ?? [];
    if (!line) return [];
    const args = [...line.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
    // The name of a run's session goes to stderr.
    return [{ args, stdout: shown.replace(/^session run-\w+\n/, '') }];
  });
}

/** Stand-ins for the packages of requirements.txt and what they require, with what agent.py calls. */
export const EXAMPLE_WHEELS: readonly Wheel[] = [
  {
    name: 'humanize',
    version: '4.12.3',
    files: { 'humanize/__init__.py': 'def naturaldelta(delta):\n    return f"{delta.days} days"\n' },
  },
  {
    name: 'python-dateutil',
    version: '2.9.0.post0',
    files: {
      'dateutil/__init__.py': '',
      'dateutil/parser.py':
        'import six\nfrom datetime import datetime\n\ndef parse(text):\n    return datetime.strptime(text, "%d %B %Y, %I:%M %p")\n',
    },
    requires: ['six>=1.5'],
  },
  { name: 'six', version: '1.17.0', files: { 'six.py': '' } },
];
