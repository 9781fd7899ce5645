import { learningApi } from '../../controller/runtime/learning-api.ts';
import { StatusWriter } from '../../controller/runtime/status-writer.ts';
import type { KubeApi, Resource } from '../../core/kube/types.ts';

/** The part of a leader's effects that reads and writes over `api`, which may have few methods. `learned` gets each object of an answer, and what it is. */
export function writesOver(api: object, learned: (object: never, resource: Resource) => void = () => {}) {
  const learning = learningApi(api as KubeApi, (resource, object) => learned(object as never, resource as Resource));
  return { api: learning, statuses: new StatusWriter({ api: learning, onTurn() {} }), logCommit() {} };
}
