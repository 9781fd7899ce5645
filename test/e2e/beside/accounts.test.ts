import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { apiAttempts, controllerAttempts, fault, type Place, prepare } from '../../support/account-attempts.ts';
import { eventually } from '../../support/eventually.ts';
import { RawApi } from '../../support/raw-api.ts';
import { type Any, get, kubectl, makeNamespace, release, releaseNamespace } from '../support/cluster.ts';
import { connect } from '../support/contract-target.ts';

/** A connection with the token of an account, as somebody has it who has stolen the token and nothing else. */
async function stolen(t: TestContext, component: string): Promise<RawApi> {
  const { connection } = await connect();
  const token = (await kubectl(['create', 'token', `${release}-${component}`, '-n', releaseNamespace])).trim();
  const api = new RawApi({ ...connection, token });
  t.onTestFinished(() => api.close());
  return api;
}

describe('a stolen token', () => {
  for (const [component, attempts] of [
    ['controller', controllerAttempts],
    ['api', apiAttempts],
  ] as const) {
    test(`of the ${component} does what Berth does, and each other attempt is refused by the policy for it, or by RBAC`, async (t) => {
      // Pod Security refuses nothing here, so that the policies are what refuses.
      const place: Place = { namespace: await makeNamespace(t, 'privileged'), releaseNamespace, release, enter: false };
      const { connection, close } = await connect();
      const admin = new RawApi(connection);
      t.onTestFinished(async () => void (await Promise.all([admin.close(), close()])));
      const owners = await prepare(admin, place);
      const api = await stolen(t, component);
      const faults: string[] = [];
      for (const attempt of attempts(place, owners)) {
        const found = await fault(api, place, attempt);
        if (found) faults.push(found);
      }
      assert.deepEqual(faults, []);
    });
  }

  test('meets policies whose expressions the API server can check against the types of what they judge', async () => {
    const own = (name: string) => name.startsWith(`${release}-`) && name.endsWith(`.${releaseNamespace}`);
    const policies = await eventually(
      async () => {
        const items = (await get(['validatingadmissionpolicies'])).items.filter(({ metadata }: Any) =>
          own(metadata.name),
        );
        const isChecked = ({ metadata, status }: Any) => status?.observedGeneration === metadata.generation;
        return items.length > 0 && items.every(isChecked) ? items : undefined;
      },
      { what: 'the expressions of the policies are checked' },
    );
    const warnings = policies.flatMap(({ metadata, status }: Any) =>
      (status.typeChecking?.expressionWarnings ?? []).map(({ warning }: Any) => `${metadata.name}: ${warning}`),
    );
    assert.deepEqual(warnings, []);
  });
});
