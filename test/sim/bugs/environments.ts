import type { Bug } from './bug.ts';

/** Mistakes with the environments of sessions. */
export const environmentBugs: readonly Bug[] = [
  {
    name: 'a turn that does not wait for the environment',
    caughtBy: ['given environment'],
    within: 200,
    focus: { environments: true, podRates: { breaks: 0.1 } },
    edits: [
      {
        file: 'runner/session/session.ts',
        find: '    if (!this.#hasEnvironment) {',
        replace: '    if (false as boolean) {',
      },
    ],
  },
  {
    name: 'one build for all requirements',
    caughtBy: ['given environment'],
    within: 200,
    focus: { environments: true, deeds: [], misfortunes: [], maxRunning: 20 },
    edits: [
      {
        file: 'controller/settings/builder.ts',
        find: '    .update(canonicalJson({ class: spec.class, image: image.image, index: index ?? null, ...sources, ...input }))',
        replace:
          '    .update(canonicalJson({ class: spec.class, image: image.image, index: index ?? null, ...sources }))',
      },
      {
        file: 'controller/environments/find-build.ts',
        find: '    spec.input?.digest === bodyFacts(wanted.input).digest',
        replace: '    bodyFacts(wanted.input).digest.length > 0',
      },
    ],
  },
  {
    name: 'another build that resolves anew',
    caughtBy: ['built alike'],
    within: 200,
    focus: { environments: true },
    edits: [
      {
        file: 'controller/environments/environments.ts',
        find: '    const again = rebuild(wanted, status.packages);',
        replace: '    const again = rebuild(wanted, []);',
      },
    ],
  },
  {
    name: 'environments built for nobody',
    caughtBy: ['built when needed'],
    within: 200,
    focus: { environments: true },
    edits: [
      {
        file: 'controller/environments/environments.ts',
        find: '      needed: this.#isNeeded(environment),',
        replace: '      needed: this.#isNeeded(environment) || true,',
      },
    ],
  },
  {
    name: 'an archive deleted as soon as it is shown',
    caughtBy: ['built when needed'],
    within: 200,
    focus: { environments: true },
    edits: [
      {
        file: 'controller/environments/decide.ts',
        find: '  return { status: { ...status, archive, pythonVersion: python, uvVersion: uv, packages, bytes } };',
        replace:
          "  return { status: { ...status, archive, pythonVersion: python, uvVersion: uv, packages, bytes }, act: 'DeleteBuild' };",
      },
    ],
  },
  {
    name: 'turns that end at the first failure of an index',
    caughtBy: ['awaited environment'],
    within: 200,
    focus: { environments: true },
    edits: [
      {
        file: 'controller/environments/decide.ts',
        find: "      ? (['Pending', 'it is built again'] as const)",
        replace: "      ? (['Failed', 'it is built again'] as const)",
      },
    ],
  },
];
