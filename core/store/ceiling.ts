import { unlessAborted } from '../abort.ts';
import { defined } from '../defined.ts';
import { isClosed } from '../kube/errors.ts';
import { eachPage } from '../kube/pages.ts';
import type { KubeApi } from '../kube/types.ts';
import { blobs } from '../resources/kinds.ts';
import { ANNOTATION_BLOB_BYTES } from '../resources/names.ts';
import type { Clock } from '../runtime.ts';
import { Accounts, LatestStates } from './accounts.ts';
import { entryOf } from './chunks.ts';
import { fitsShare, type Holding, isShort, type ShareRule, shareOf, type Wanted } from './share.ts';
import { type NamespaceUsage, type Shortage, StoreFullError, type StoreKey } from './store.ts';

export interface CeilingOptions {
  api: Pick<KubeApi, 'list'>;
  clock: Clock;
  /** Limit of the base64 bytes of all Blobs together. */
  ceilingBytes: number;
  /** A namespace may grow while it holds no more than this times what is free. Default: there are no shares. */
  shareFactor?: number;
  /** Most bytes of single namespaces, however much is free. Default: none has such a limit. */
  quotas?: ReadonlyMap<string, number>;
  /** Namespaces to list one by one. Default: one list of all namespaces. */
  namespaces?: readonly string[];
}

/** Age up to which a count is used while there is room. */
const RECOUNT_MS = 60_000;
/** Age up to which a count is believed that shows no room: a list of all Blobs for each refused write would be too much. */
const FRESH_MS = 1_000;
const PAGE_SIZE = 500;
/** Assumed size of a Blob without the annotation: the largest possible. */
const UNKNOWN_BYTES = 720_000;

/** What one list has counted. */
interface Count {
  accounts: Accounts;
  states: LatestStates;
}

/**
 * Keeps each namespace within its share of the store, and so the sum of all Blobs below the ceiling. The bytes are those of
 * the last list of their metadata, plus the bytes written since that list began or being written. Our own writes never
 * make them too low; they may be too high until the next list.
 */
export class Ceiling {
  readonly #options: CeilingOptions;
  readonly #rule: ShareRule;
  readonly #quotas: ReadonlyMap<string, number>;
  #listed: Count = { accounts: new Accounts(), states: new LatestStates() };
  #listedAt = -Infinity;
  /** Something was removed since the last list began. */
  #hasRemoved = false;
  /** Bytes written, or perhaps written, since the list began. */
  readonly #written = new Accounts();
  readonly #beingWritten = new Accounts();
  #counting: Promise<void> | undefined;
  /** Count of each listed namespace when it could last be read. */
  readonly #held = new Map<string, Count>();

  constructor(options: CeilingOptions) {
    const { ceilingBytes, shareFactor: factor = Number.POSITIVE_INFINITY } = options;
    this.#options = options;
    this.#rule = { ceilingBytes, factor };
    this.#quotas = options.quotas ?? new Map();
  }

  /** Returns the number of bytes, counted within the last minute. */
  async count(signal: AbortSignal): Promise<number> {
    if (this.#ageMs > RECOUNT_MS) await this.#recount(signal);
    return this.#bytes;
  }

  /** Counts anew, so that what was removed before counts no more. */
  recount(signal: AbortSignal): Promise<void> {
    return this.#recount(signal);
  }

  /**
   * Reserves `bytes` more, or rejects with a StoreFullError by a count that is hardly a second old. The caller calls the returned function
   * when the write has ended, with or without success. `withinShare`: see `Store.put`.
   */
  async reserve(key: StoreKey, bytes: number, signal: AbortSignal, withinShare = false): Promise<() => void> {
    const replaced = withinShare ? 0 : undefined;
    await this.count(signal);
    if (!this.#fits(key, bytes, replaced) && (this.#hasRemoved || this.#ageMs > FRESH_MS)) await this.#recount(signal);
    if (!this.#fits(key, bytes, replaced)) throw new StoreFullError(bytes, key.namespace, this.usageOf(key.namespace));
    const { namespace, sessionUID } = key;
    const kind = key.kind === 'State' ? 'states' : 'history';
    this.#beingWritten.add(namespace, kind, bytes);
    return () => {
      this.#beingWritten.add(namespace, kind, -bytes);
      this.#written.add(namespace, kind, bytes);
      if (kind === 'states') this.#listed.states.add(sessionUID, key, bytes);
    };
  }

  /** Notes that something was removed, which only a new count shows. */
  removed(): void {
    this.#hasRemoved = true;
  }

  /** Returns what a namespace holds and may hold, by the last count and the writes since. */
  usageOf(namespace: string): NamespaceUsage {
    const holding = this.#holding(namespace);
    const bytes = holding.states + holding.history;
    const others = this.#bytes - bytes;
    const share = Math.floor(shareOf(this.#ruleOf(namespace), others));
    return { namespace, bytes, holding, others, share, ...defined({ quota: this.#quotas.get(namespace) }) };
  }

  /** Returns the same; undefined before the first count. */
  roomOf(namespace: string): NamespaceUsage | undefined {
    return this.#listedAt === -Infinity ? undefined : this.usageOf(namespace);
  }

  /** Returns the namespaces that have a quota, by name. */
  limited(): NamespaceUsage[] {
    return [...this.#quotas.keys()].sort().map((namespace) => this.usageOf(namespace));
  }

  /** Returns the namespaces that hold the most, with at most `most` of them. */
  largest(most: number): NamespaceUsage[] {
    const names = [this.#listed.accounts, this.#written, this.#beingWritten].flatMap(({ namespaces }) => [
      ...namespaces,
    ]);
    const usages = [...new Set(names)].map((namespace) => this.usageOf(namespace));
    return usages.sort((a, b) => b.bytes - a.bytes || (a.namespace < b.namespace ? -1 : 1)).slice(0, most);
  }

  /**
   * Returns what keeps the session from storing its last state again, and `history` bytes of outputs and artifacts;
   * undefined: nothing that is known, or its own size.
   */
  shortOf(namespace: string, sessionUID: string, history: number): Shortage | undefined {
    const usage = this.roomOf(namespace);
    const last = { state: this.#listed.states.bytesOf(sessionUID), history };
    if (!usage || !isShort(this.#ruleOf(namespace), usage.holding, usage.others, last)) return undefined;
    return { ...usage, wanted: last.state + history };
  }

  #fits(
    { namespace, sessionUID, kind }: StoreKey,
    bytes: number,
    replaced = this.#listed.states.bytesOf(sessionUID),
  ): boolean {
    const { holding, others } = this.usageOf(namespace);
    const wanted: Wanted = kind === 'State' ? { as: 'State', bytes, replaced } : { as: 'History', bytes };
    return fitsShare(this.#ruleOf(namespace), holding, others, wanted);
  }

  #ruleOf(namespace: string): ShareRule {
    return { ...this.#rule, ...defined({ quotaBytes: this.#quotas.get(namespace) }) };
  }

  #holding(namespace: string): Holding {
    const parts = [this.#listed.accounts, this.#written, this.#beingWritten].map((part) => part.of(namespace));
    return parts.reduce((sum, { states, history }) => ({
      states: sum.states + states,
      history: sum.history + history,
    }));
  }

  /** Age of the last count, milliseconds. */
  get #ageMs(): number {
    return this.#options.clock.monotonic() - this.#listedAt;
  }

  get #bytes(): number {
    return this.#listed.accounts.total + this.#written.total + this.#beingWritten.total;
  }

  /** Counts anew. Concurrent callers share one list; a caller whose signal aborts leaves it to the others. */
  async #recount(signal: AbortSignal): Promise<void> {
    this.#counting ??= this.#list().finally(() => {
      this.#counting = undefined;
    });
    await unlessAborted(this.#counting, signal);
  }

  async #list(): Promise<void> {
    const { clock, namespaces } = this.#options;
    const startedAt = clock.monotonic();
    this.#hasRemoved = false;
    const before = this.#written.copy();
    let count: Count;
    if (namespaces) {
      count = { accounts: new Accounts(), states: new LatestStates() };
      for (const namespace of namespaces) {
        const { accounts, states } = await this.#heldIn(namespace);
        count.accounts.addAll(accounts);
        count.states.addAll(states);
      }
    } else count = await this.#count(undefined);
    this.#listed = count;
    this.#listedAt = startedAt;
    this.#written.subtract(before);
  }

  /** Counts one namespace. A namespace that cannot be read must not keep results of the others from being stored. */
  async #heldIn(namespace: string): Promise<Count> {
    try {
      this.#held.set(namespace, await this.#count(namespace));
    } catch (error) {
      if (!isClosed(error)) throw error;
    }
    return this.#held.get(namespace) ?? { accounts: new Accounts(), states: new LatestStates() };
  }

  async #count(namespace: string | undefined): Promise<Count> {
    const accounts = new Accounts();
    const states = new LatestStates();
    const scope = namespace === undefined ? {} : { namespace };
    await eachPage(this.#options.api, blobs, { ...scope, limit: PAGE_SIZE, metadataOnly: true }, ({ items }) => {
      for (const { metadata } of items) {
        const bytes = Number(metadata.annotations?.[ANNOTATION_BLOB_BYTES]) || UNKNOWN_BYTES;
        const entry = entryOf(metadata);
        // A Blob without a kind counts as a state, which gives way to nothing.
        const isState = entry?.kind === undefined || entry.kind === 'State';
        accounts.add(metadata.namespace ?? namespace ?? '', isState ? 'states' : 'history', bytes);
        if (isState && entry) states.add(entry.sessionUID, entry, bytes);
      }
    });
    return { accounts, states };
  }
}
