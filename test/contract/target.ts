import assert from 'node:assert/strict';
import { afterAll, beforeAll } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Connection, RawApi } from '../support/raw-api.ts';
import { widgetDefinition } from './widget.ts';

/** A cluster the suite runs against: somebody who may do everything there. */
export interface ContractTarget {
  connection: Connection;
  close(): Promise<void>;
}

export type Connect = () => Promise<ContractTarget>;

/** Minor version whose behaviour and words the contract has. */
const MINOR = 35;

/** Part of an error text that shows the value of a field. */
const SHOWN = /\bInvalid value: (?:(?:"(?:[^"\\]|\\.)*"|null|-?[0-9][0-9a-z.]*): )?|\bmap\[string\]interface \{\}/g;

/** Shared setup of the tests of one topic: the API, a namespace of their own, and the test's custom resource. */
export class Bench {
  #target: ContractTarget | undefined;
  #api: RawApi | undefined;
  namespace = '';
  #count = 0;
  #minor = MINOR;

  get api(): RawApi {
    assert.ok(this.#api, 'the bench is used in tests only');
    return this.#api;
  }

  async open(connect: Connect): Promise<void> {
    this.#target = await connect();
    this.#api = new RawApi(this.#target.connection);
    this.#minor = Number.parseInt((await this.api.get('/version')).body.minor, 10);
    const made = await this.api.post('/api/v1/namespaces', { metadata: { generateName: 'contract-' } });
    assert.equal(made.status, 201, made.text);
    this.namespace = made.body.metadata.name;
    await this.define(widgetDefinition, this.widgets);
    await eventually(async () => (await this.api.get(`${this.core}/serviceaccounts/default`)).status === 200, {
      what: 'the namespace has its service account',
    });
  }

  /** Brings a definition up to date, also one of an earlier run, and waits until `path` is served. */
  async define(definition: { metadata: { name: string } }, path: string): Promise<void> {
    const { name } = definition.metadata;
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const applied = await this.api.call('PATCH', `${definitions}/${name}?fieldManager=contract&force=true`, {
      body: definition,
      contentType: 'application/apply-patch+yaml',
    });
    assert.ok(applied.status === 200 || applied.status === 201, applied.text);
    await eventually(async () => (await this.api.get(path)).status === 200, { what: `${path} is served` });
  }

  async close(): Promise<void> {
    await this.#api?.delete(`/api/v1/namespaces/${this.namespace}`);
    await this.#api?.close();
    await this.#target?.close();
  }

  /** True where the server is older than the version that the contract was taken from. Tests state what it does otherwise. */
  get isOlder(): boolean {
    return this.#minor < MINOR;
  }

  /**
   * Returns an error text for a comparison. Older servers show a value in another form, or its type: there it is left out of
   * the text.
   */
  words(text: string): string {
    return this.isOlder
      ? text.replaceAll(SHOWN, (shown) => (shown.startsWith('Invalid') ? 'Invalid value: ' : ''))
      : text;
  }

  /** A name nobody else uses. */
  name(base = 'w'): string {
    this.#count += 1;
    return `${base}-${this.#count}`;
  }

  get core(): string {
    return `/api/v1/namespaces/${this.namespace}`;
  }

  get widgets(): string {
    return `/apis/contract.berth.dev/v1/namespaces/${this.namespace}/widgets`;
  }

  widget(fields: object = {}, metadata: object = {}): { apiVersion: string; kind: string; metadata: { name: string } } {
    return {
      apiVersion: 'contract.berth.dev/v1',
      kind: 'Widget',
      metadata: { name: this.name(), ...metadata },
      ...fields,
    };
  }

  /** Creates a widget; the test fails when that is refused. */
  async make(fields: object = { spec: { size: 1 } }, metadata: object = {}) {
    const made = await this.api.post(this.widgets, this.widget(fields, metadata));
    assert.equal(made.status, 201, made.text);
    return made.body;
  }

  at(object: { metadata: { name: string } }): string {
    return `${this.widgets}/${object.metadata.name}`;
  }
}

/** Opens a bench around the tests of the enclosing `describe`. */
export function useBench(connect: Connect): Bench {
  const bench = new Bench();
  beforeAll(() => bench.open(connect));
  afterAll(() => bench.close());
  return bench;
}
