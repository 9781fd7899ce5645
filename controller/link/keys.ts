import { KEY_BYTES } from '../../core/frames/seal.ts';
import type { Secret } from '../../core/kube/builtin.ts';
import { ifThere, isAlreadyExists } from '../../core/kube/errors.ts';
import { secrets } from '../../core/kube/resources.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { MASTER_KEY_TYPE } from '../../core/resources/names.ts';
import type { Random } from '../../core/runtime.ts';

/** Master keys of the installation; everything sealed names its master key. */
export interface MasterKeys {
  /** Master key for all that is sealed from now on. */
  current: { id: string; key: Buffer };
  byId: ReadonlyMap<string, Buffer>;
}

export interface LoadedKeys extends MasterKeys {
  /**
   * True when this call created the Secret: then no controller has written anything before, as none does without its
   * keys.
   */
  created: boolean;
}

/** The key of the Secret's data that names the current master key. */
const CURRENT = 'current';

/** Raised when the Secret of the master keys cannot be used. */
class MasterKeyError extends Error {
  readonly code = 'MasterKeyInvalid';
}

/**
 * Loads the master keys from Secret `namespace/name`. A missing Secret is created with a random key by the controller,
 * never by a chart, so that rendering a chart again changes nothing. The Secret is kept on uninstall, as the sealed
 * states are.
 */
export async function loadMasterKeys(
  api: KubeApi,
  random: Random,
  where: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<LoadedKeys> {
  const found = await ifThere(api.get(secrets, where, { signal }));
  if (found) return parse(found, where);
  const id = random.bytes(4).toString('hex');
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...where, labels: { 'app.kubernetes.io/managed-by': 'berth' } },
    type: MASTER_KEY_TYPE,
    data: {
      [CURRENT]: Buffer.from(id).toString('base64'),
      [id]: random.bytes(KEY_BYTES).toString('base64'),
    },
  };
  try {
    return { ...parse(await api.create(secrets, secret, { signal }), where), created: true };
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return parse(await api.get(secrets, where, { signal }), where); // another controller has created it since
  }
}

function parse(secret: Secret, { namespace, name }: { namespace: string; name: string }): LoadedKeys {
  const byId = new Map<string, Buffer>();
  for (const [id, data] of Object.entries(secret.data ?? {})) {
    if (id === CURRENT) continue;
    const key = Buffer.from(data, 'base64');
    if (key.length !== KEY_BYTES) {
      throw new MasterKeyError(
        `Secret ${namespace}/${name}: key "${id}" has ${key.length} bytes, not ${KEY_BYTES}; put the original back`,
      );
    }
    byId.set(id, key);
  }
  const id = Buffer.from(secret.data?.[CURRENT] ?? '', 'base64').toString();
  const key = byId.get(id);
  if (!key) {
    throw new MasterKeyError(
      `Secret ${namespace}/${name}: "${CURRENT}" names the key "${id}", which is not in it; put it back`,
    );
  }
  return { current: { id, key }, byId, created: false };
}
