import { configMaps } from '../../../core/kube/resources.ts';
import type { AgentFile } from '../../../core/resources/agent.ts';
import { LABEL_AGENT_FILES } from '../../../core/resources/names.ts';
import type { Dice } from '../random.ts';
import { repeated, type Surroundings } from './repeated.ts';
import { NAMESPACES } from './users.ts';

/** Ignores a refusal, because another write was faster. */
const nothing = () => undefined;

/** ConfigMaps with files of agents, in each namespace. */
const CONFIG_MAPS = ['files-1', 'files-2'] as const;
/** Name of the one file in each. */
const FILE = 'content';

/** Pattern of a file's content, which is different for every ConfigMap and edit. */
export const CONTENT = /content \S+ \d+;/;

/** Returns the data of a ConfigMap with this content. */
export const holding = (content: string) => ({ data: { [FILE]: content } });

/** Draws the files of a session's agent: none, or those of one ConfigMap or of both. */
export function someFiles(dice: Dice): AgentFile[] {
  return CONFIG_MAPS.filter(() => dice.chance(0.4)).map((configMap, index) => ({
    configMap,
    items: [{ key: FILE, path: `${FILE}-${index}` }],
  }));
}

/** Users who create, edit, label and delete ConfigMaps with files, until `end`. */
export class FileOwners {
  readonly #here: Surroundings;
  readonly #stop: () => void;
  #edits = 0;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#stop = repeated(surroundings, 'an owner of files', surroundings.dice.skewed(200, 4000), () => this.#act());
  }

  /** Ends the changes and writes all ConfigMaps, so that every session gets its files. */
  end(): void {
    this.#stop();
    for (const namespace of NAMESPACES) for (const name of CONFIG_MAPS) this.#put(namespace, name, true);
  }

  #act(): void {
    const { dice, server, trace } = this.#here;
    const [namespace, name] = [dice.pick(NAMESPACES), dice.pick(CONFIG_MAPS)];
    const isThere = server.get(configMaps, namespace, name) !== undefined;
    trace.line(() => ['user', isThere ? 'changes' : 'creates', `files ${namespace}/${name}`]);
    if (isThere && dice.chance(0.3)) void server.admin.delete(configMaps, { namespace, name }).catch(nothing);
    else this.#put(namespace, name, dice.chance(0.9));
  }

  #put(namespace: string, name: string, isLabelled: boolean): void {
    const { admin } = this.#here.server;
    const labels = { [LABEL_AGENT_FILES]: isLabelled ? 'true' : 'false' };
    const content = holding(`content ${namespace}/${name} ${++this.#edits};`);
    const isThere = this.#here.server.get(configMaps, namespace, name) !== undefined;
    void (
      isThere
        ? admin.patch(configMaps, { namespace, name }, { metadata: { labels }, ...content }, { type: 'merge' })
        : admin.create(configMaps, { metadata: { namespace, name, labels }, ...content })
    ).catch(nothing);
  }
}
