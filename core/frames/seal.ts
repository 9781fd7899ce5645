/** The only cryptographic primitive, AES-256-GCM, and the derivation of its keys. */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import type { Random } from '../runtime.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

/**
 * Cache of key objects. Node would make one from the bytes at every use, which takes longer than to seal a frame. The
 * bytes of a key never change.
 */
const keyObjects = new WeakMap<Buffer, KeyObject>();

function keyObject(key: Buffer): KeyObject {
  let made = keyObjects.get(key);
  if (!made) {
    made = createSecretKey(key);
    keyObjects.set(key, made);
  }
  return made;
}

/** Returns IV, ciphertext and tag. `random` gives a fresh IV: one key must not seal more than 2^32 times. */
export function seal(key: Buffer, plain: Buffer, associated: Buffer, random: Random): Buffer {
  const iv = random.bytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyObject(key), iv, { authTagLength: TAG_BYTES }).setAAD(associated);
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Returns the plain bytes; undefined when they were not sealed with this key and this associated data. */
export function open(key: Buffer, sealed: Buffer, associated: Buffer): Buffer | undefined {
  if (sealed.length < IV_BYTES + TAG_BYTES) return undefined;
  const iv = sealed.subarray(0, IV_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', keyObject(key), iv, { authTagLength: TAG_BYTES })
    .setAAD(associated)
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
  try {
    decipher.final();
    return plain;
  } catch {
    return undefined;
  }
}

/** Facts from which a pod's frame keys are derived. `boot` is the nonce of `ready`, hex as the runner wrote it. */
export interface PodIdentity {
  session: string;
  podUID: string;
  boot: string;
}

/** Derives one key per direction, so that a message of one direction cannot be replayed in the other. */
export function frameKeys(master: Buffer, pod: PodIdentity): { up: Buffer; down: Buffer } {
  const key = (direction: 'up' | 'down') =>
    derive(master, pod.boot, `berth/v1/${direction}/${pod.session}/${pod.podUID}`);
  return { up: key('up'), down: key('down') };
}

/** Derives the key of a session's state; it outlives incarnations. */
export function stateKey(master: Buffer, session: string): Buffer {
  return derive(master, session, 'berth/v1/state');
}

/**
 * Returns the proof, in base64, that an installation with this master key has led with the epoch, as sent to the pod. A pod's
 * keys do not make it.
 */
export function epochProof(master: Buffer, podUID: string, epoch: number): string {
  const key = derive(master, podUID, 'berth/v1/epoch');
  return createHmac('sha256', key).update(String(epoch)).digest('base64');
}

/** Reports whether the proof of the epoch is the one that a holder of this master key has sent to the pod. */
export function provesEpoch(proof: string, master: Buffer, podUID: string, epoch: number): boolean {
  const [given, made] = [Buffer.from(proof), Buffer.from(epochProof(master, podUID, epoch))];
  return given.length === made.length && timingSafeEqual(given, made);
}

/** Label of a sealed state: its session and position. `keyId` names the master key. */
export interface StateLabel {
  session: string;
  keyId: string;
}

export function sealState(key: Buffer, plain: Buffer, label: StateLabel, random: Random): Buffer {
  return seal(key, plain, stateAssociated(label), random);
}

/** Returns undefined for bytes that are not a state of this session, sealed with this key. */
export function openState(key: Buffer, sealed: Buffer, label: StateLabel): Buffer | undefined {
  return open(key, sealed, stateAssociated(label));
}

function stateAssociated({ session, keyId }: StateLabel): Buffer {
  return Buffer.from(JSON.stringify({ v: 1, sid: session, keyId }));
}

function derive(master: Buffer, salt: string, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, salt, info, KEY_BYTES));
}
