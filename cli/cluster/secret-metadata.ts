import type { KubeClient } from '../../core/kube/client.ts';
import { ifThere } from '../../core/kube/errors.ts';
import { objectPath } from '../../core/kube/paths.ts';
import { secrets } from '../../core/kube/resources.ts';
import type { ObjectRef } from '../../core/kube/types.ts';

/** Metadata of an object that has the times of its changes. */
interface Changed {
  creationTimestamp: string;
  managedFields?: { time?: string }[];
}

const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

/** Reads the metadata of a Secret and none of its values; undefined where there is no such Secret. */
export async function secretMetadata(
  api: Pick<KubeClient, 'raw'>,
  ref: ObjectRef,
  signal: AbortSignal,
): Promise<Changed | undefined> {
  const read = api.raw('GET', objectPath(secrets, ref), { accept: METADATA, signal });
  return ((await ifThere(read)) as { metadata: Changed } | undefined)?.metadata;
}

/** Time of the last change of an object, RFC 3339: the latest of its field managers, as far as the server keeps them. */
export function lastChange({ creationTimestamp, managedFields = [] }: Changed): string {
  const times = managedFields.flatMap(({ time }) => (time ? [time] : []));
  return [creationTimestamp, ...times].toSorted().at(-1) as string;
}
