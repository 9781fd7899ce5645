/** The pages of coding agents, followed beside a stand-in for the models. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { follow } from '../support/follow.ts';
import { CHECKOUT, type Command, commands } from '../support/pages.ts';
import type { CodingAgent } from './install.ts';

export interface Page {
  agent: CodingAgent;
  /** Name of the class, and of the page. */
  name: string;
  what: string;
  /** True if the class takes the tokens of a turn from the agent's output. */
  tellsTokens: boolean;
}

export const PAGES: readonly Page[] = [
  { agent: 'claude', name: 'claude-code', what: 'Claude Code', tellsTokens: true },
  { agent: 'codex', name: 'codex', what: 'Codex CLI', tellsTokens: true },
  { agent: 'gemini', name: 'gemini-cli', what: 'Gemini CLI', tellsTokens: false },
];

const LIMIT_MS = 10 * 60_000;
/** Commands that are left out: the reader has the program, the cluster and the image already. */
const DONE = /^(npm|docker) |berth local /;
/** The reader's repository. */
const REPOSITORY = `git init --quiet --initial-branch=main greeter
echo 'echo hello' >greeter/hello.sh
git -C greeter add --all
git -C greeter -c user.name=Ann -c user.email=ann@example.com commit --quiet --message='Say hello'`;
const KEYS = { ANTHROPIC_API_KEY: 'sk-ant-stand-in-0123456789', OPENAI_API_KEY: 'sk-stand-in-0123456789' };

/** Surroundings of the commands: KUBECONFIG with the namespace, and the fields of the class that are the reader's own. */
interface Reader {
  folder: string;
  env: NodeJS.ProcessEnv;
  own?: object;
}

/**
 * Runs the commands of the agent's page. Rejects unless each does what the page shows, the change of the session has arrived
 * in the repository by its patch, and the model was given the whole conversation after the suspension.
 */
export async function followPage({ name, tellsTokens }: Page, { folder, env, own }: Reader): Promise<void> {
  mkdirSync(join(folder, 'examples'));
  const example = join('examples', `${name}.yaml`);
  const object = parse(readFileSync(join(CHECKOUT, example), 'utf8'));
  if (own) writeFileSync(join(folder, example), stringify({ ...object, spec: { ...object.spec, ...own } }));
  else copyFileSync(join(CHECKOUT, example), join(folder, example));

  const page = `docs/agents/${name}.md`;
  const typed = commands(page).filter(({ typed }) => !DONE.test(typed));
  const [first, second] = typed.flatMap(({ typed }) => /^berth turn .*'(.*)'$/.exec(typed)?.slice(1) ?? []);
  const given = JSON.stringify([first, `ANSWER to 1: ${first}`, second]);
  const check = (typed: string, shown: string): Command => ({ line: 0, isIgnored: false, typed, shown: `${shown}\n` });
  const checks = [
    check('sh greeter/hello.sh', 'hello\ngoodbye'),
    check('(cd greeter && sh test.sh)', 'goodbye'),
    check('berth logs fix --turn fix-2 | grep given', `the model was given: ${given}`),
    check("kubectl get turn fix-2 -o jsonpath='{.status.incarnation}'", '2'),
  ];
  const usage = '{.status.metadata.usage.inputTokens} {.status.metadata.usage.outputTokens}';
  if (tellsTokens) checks.push(check(`kubectl get turn fix-1 -o jsonpath='${usage}'`, '22 14'));
  await follow([...typed, ...checks], {
    page,
    folder,
    env: { ...KEYS, GEMINI_API_KEY: 'stand-in-0123456789', ...env },
    before: REPOSITORY,
    limitMs: LIMIT_MS,
  });
}
