import { environments, type StoredEnvironment, sessions } from '../../../core/resources/kinds.ts';
import type { Plan } from '../cluster/agent.ts';
import type { Dice } from '../random.ts';
import { repeated, type Surroundings } from './repeated.ts';
import { CLASSES, environmentOf, NAMESPACES } from './users.ts';
import { create, nothing } from './writes.ts';

/** Requirements: packages that exist, one that no index has, and one whose index fails now and then. */
const SOUND = ['a', 'b'] as const;
const UNSOLVABLE = 'unsolvable';
const FLAKY = 'flaky';

const isSound = ({ spec }: StoredEnvironment) => SOUND.some((one) => spec.requirements.includes(one));

/** Returns what the builder does with its input, which may be that of any turn that somebody gives the build. */
export function buildPlan(input: unknown, dice: Dice): Plan {
  const { requirements, locked } = (input ?? {}) as { requirements?: string[]; locked?: boolean };
  const fails = (code: string): Plan => ({ ms: dice.skewed(5, 2000), output: 1, ends: 'Error', code });
  if (!Array.isArray(requirements)) return fails('RequirementInvalid');
  const names = requirements.map((each) => each.split('==')[0]);
  if (names.includes(UNSOLVABLE)) return fails('Unsolvable');
  if (names.includes(FLAKY) && dice.chance(0.6)) return fails('IndexUnreachable');
  // The index has another version at any time; a locked build has its packages named.
  const resolved = (name: string) => `${name}==${dice.int(1, 1000)}`;
  const builds = requirements.map((each) => (locked ? (each.split(' ')[0] ?? '') : resolved(each)));
  // uv tells of its progress, so that no build is stopped for its silence.
  return { ms: dice.skewed(5, 8000), output: 1, state: dice.int(100, 20_000), builds, talksMs: 1_000 };
}

/** Users who create and delete Environments and the sessions that build them, until `end`. */
export class EnvironmentOwners {
  readonly #here: Surroundings;
  readonly #stop: () => void;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#stop = repeated(surroundings, 'an owner of environments', surroundings.dice.skewed(500, 8000), () =>
      this.#act(),
    );
  }

  /** Ends the changes. From then on Environments that cannot become ready are replaced. */
  end(): void {
    this.#stop();
    this.#mend();
  }

  #act(): void {
    const { dice, server, trace } = this.#here;
    const namespace = dice.pick(NAMESPACES);
    const builds = server.list(sessions).filter(({ spec }) => spec.build);
    if (dice.chance(0.15) && builds.length > 0) this.#deleteBuild(dice.pick(builds)?.metadata);
    else {
      const sessionClass = dice.pick(CLASSES);
      const { name } = environmentOf(sessionClass);
      const isThere = server.get(environments, namespace, name) !== undefined;
      trace.line(() => ['user', isThere ? 'deletes' : 'creates', `environment ${namespace}/${name}`]);
      if (isThere) void server.admin.delete(environments, { namespace, name }).catch(nothing);
      else this.#create(namespace, sessionClass, dice.pick([...SOUND, ...SOUND, UNSOLVABLE, FLAKY]));
    }
  }

  /** Replaces, again and again, what keeps an environment from being built for good. */
  #mend(): void {
    const { scheduler, server } = this.#here;
    for (const namespace of NAMESPACES) {
      for (const sessionClass of CLASSES) {
        const { name } = environmentOf(sessionClass);
        const environment = server.get(environments, namespace, name);
        if (!environment) this.#create(namespace, sessionClass, SOUND[0]);
        else if (environment.status?.phase === 'Failed' || !isSound(environment)) this.#replace(environment);
      }
    }
    scheduler.after(5000, undefined, 'an owner of environments', () => this.#mend());
  }

  /** Removes the Environment and whatever has the name of its build; `#mend` creates another. */
  #replace({ metadata: { namespace, name }, status }: StoredEnvironment): void {
    const { server } = this.#here;
    if (status?.build) this.#deleteBuild({ namespace, name: status.build });
    void server.admin.delete(environments, { namespace, name }).catch(nothing);
  }

  #deleteBuild(build: { namespace?: string; name: string } | undefined): void {
    if (!build) return;
    this.#here.trace.line(() => ['user', 'deletes', `build ${build.namespace}/${build.name}`]);
    void this.#here.server.admin.delete(sessions, build).catch(nothing);
  }

  #create(namespace: string, sessionClass: string, requirement: string): void {
    const { name } = environmentOf(sessionClass);
    void create(this.#here.server, environments, namespace, name, { class: sessionClass, requirements: [requirement] });
  }
}
