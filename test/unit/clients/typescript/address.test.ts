import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { addressOf } from '../../../../clients/typescript/src/address.ts';
import { ConfigurationError } from '../../../../clients/typescript/src/errors.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-address-'));
afterAll(() => rmSync(folder, { recursive: true }));
const nowhere = { BERTH_HOME: join(folder, 'nothing') };

describe('the address of a client', () => {
  test('is that of the options before that of the environment', () => {
    const env = { BERTH_SERVER: 'https://other.example', BERTH_TOKEN_FILE: '/other' };
    assert.deepEqual(addressOf({ server: 'https://berth.example/base/', token: 't', namespace: 'team' }, env), {
      server: 'https://berth.example/base',
      token: 't',
      namespace: 'team',
    });
    assert.deepEqual(addressOf({}, env), {
      server: 'https://other.example',
      token: { file: '/other' },
      namespace: 'default',
    });
  });

  test('is that of the embedded cluster where nothing is said and one runs', () => {
    const home = mkdtempSync(join(folder, 'home-'));
    const state = { pid: process.pid, apiUrl: 'http://127.0.0.1:1234', apiTokenFile: join(home, 'api-token') };
    writeFileSync(join(home, 'state.json'), JSON.stringify(state));
    const address = { server: state.apiUrl, token: { file: state.apiTokenFile }, namespace: 'default' };
    assert.deepEqual(addressOf({}, { BERTH_HOME: home }), address);
    writeFileSync(join(home, 'state.json'), JSON.stringify({ ...state, pid: 2 ** 30 }));
    assert.throws(() => addressOf({}, { BERTH_HOME: home }), /does not name one that runs/);
  });

  test('that nobody gives is refused with the three ways to give one', () => {
    const refused = (error: unknown) => {
      assert.ok(error instanceof ConfigurationError);
      assert.match(
        error.message,
        /options server and token.*BERTH_SERVER and BERTH_TOKEN_FILE.*berth local up --detach/,
      );
      return true;
    };
    assert.throws(() => addressOf({}, nowhere), refused);
  });

  const wrong: [string, RegExp][] = [
    ['berth.example', /server: the URL of a server begins with https:\/\//],
    ['ftp://berth.example', /begins with https/],
    ['https://me:secret@berth.example', /server: the URL has a user or a password/],
    ['https://berth.example/?x=1', /has a \? or #/],
    ['http://berth.example', /server: berth\.example would get the token unencrypted; .*allowPlainText: true/],
  ];
  for (const [server, says] of wrong) {
    test(`that is ${server} is refused`, () => {
      assert.throws(() => addressOf({ server, token: 't' }, {}), says);
    });
  }

  test('may be http:// to this machine, and to others where allowPlainText says so', () => {
    for (const server of ['http://localhost:1', 'http://127.0.0.1:1', 'http://[::1]:1']) {
      assert.equal(addressOf({ server, token: 't' }, {}).server, server);
    }
    const plain = { server: 'http://berth-api.berth-system', token: 't', allowPlainText: true };
    assert.equal(addressOf(plain, {}).server, plain.server);
  });

  test('of BERTH_SERVER has the token that is projected into the pod, unless BERTH_TOKEN_FILE names another', () => {
    const podToken = join(folder, 'projected');
    writeFileSync(podToken, 'a-token');
    const env = { BERTH_SERVER: 'https://berth.example' };
    assert.deepEqual(addressOf({}, env, podToken).token, { file: podToken });
    assert.deepEqual(addressOf({}, { ...env, BERTH_TOKEN_FILE: '/other' }, podToken).token, { file: '/other' });
    assert.equal(addressOf({ token: 't' }, env, podToken).token, 't');
    assert.throws(
      () => addressOf({}, env, join(folder, 'missing')),
      /mount a token with the audience berth at .*missing$/,
    );
  });

  test('without a token is refused, and says where one can be', () => {
    assert.throws(
      () => addressOf({}, { BERTH_SERVER: 'https://berth.example' }),
      /^ConfigurationError: BERTH_SERVER needs a token: .*BERTH_TOKEN_FILE/,
    );
  });
});
