import { namespaces } from '../../../core/kube/resources.ts';
import { approvals, sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import { ANNOTATION_TOUCHED_AT } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { SimServer } from '../api/server.ts';
import type { Plan } from '../cluster/agent.ts';
import type { Dice } from '../random.ts';
import { aPlan, someHistory, someLimits, someRules, someSession, TIERS } from './specs.ts';
import { NAMESPACES, type Users } from './users.ts';
import { create, decide, edit, give, note, nothing } from './writes.ts';

/** An action of a user. `weight` is its relative frequency. */
interface Deed {
  name: string;
  weight: number;
  /** Does the deed; no other deed has the same `number`. */
  do(users: Users, number: number): Promise<unknown> | undefined;
}

export const deeds: readonly Deed[] = [
  {
    name: 'create a session',
    weight: 4,
    do(users, number) {
      const { server, dice, maxSessions } = users;
      if (server.list(sessions).length >= maxSessions) return undefined;
      // Names are few, so that one is often used again.
      const name = `s${dice.int(1, maxSessions)}`;
      const spec = someSession(users, number);
      const drawn = dice.pick(NAMESPACES);
      // Sessions of one namespace share a group.
      return create(server, sessions, users.sharing ? NAMESPACES[0] : drawn, name, spec);
    },
  },
  {
    name: 'give a turn',
    weight: 20,
    do(users, number) {
      const { server, dice } = users;
      const session = dice.pick(server.list(sessions));
      if (!session) return undefined;
      return give(users, session, `t${number}`, dice.chance(0.1) ? `${dice.int(2, 20)}s` : undefined);
    },
  },
  {
    name: 'give turns to nobody',
    weight: 0.5,
    do({ server, dice, maxSessions }, number) {
      const spec = { session: `s${dice.int(1, maxSessions)}`, input: { ms: 10, output: 1 } satisfies Plan };
      return create(server, turns, dice.pick(NAMESPACES), `t${number}`, spec);
    },
  },
  {
    name: 'cancel a turn',
    weight: 2,
    do({ server, dice }) {
      const turn = dice.pick(server.list(turns).filter(({ status }) => !isTerminal(status?.phase)));
      return turn && edit(server, turns, turn, { cancel: true });
    },
  },
  {
    name: 'suspend a session',
    weight: 2,
    do: ({ server, dice }) => change(server, dice, { suspend: true }),
  },
  {
    name: 'resume a session',
    weight: 4,
    do: ({ server, dice }) => change(server, dice, { suspend: false, suspendRequest: null }),
  },
  {
    name: 'ask a session to suspend once',
    weight: 3,
    do: ({ server, dice }, number) => change(server, dice, { suspendRequest: `r${number}` }),
  },
  {
    name: 'delete a session, and perhaps make another of its name',
    weight: 1.5,
    do(users, number) {
      const { server, dice, scheduler } = users;
      const session = dice.pick(server.list(sessions));
      if (!session) return undefined;
      const { name, namespace } = session.metadata as { name: string; namespace: string };
      if (dice.chance(0.6)) {
        scheduler.after(dice.skewed(1, 3000), undefined, `user: ${name} again`, () => {
          const spec = someSession(users, number);
          void create(server, sessions, namespace, name, spec);
          void create(server, turns, namespace, `t${number}`, { session: name, input: aPlan(users) });
        });
      }
      return server.admin.delete(sessions, { namespace, name }).catch(() => {});
    },
  },
  {
    name: 'delete a turn',
    weight: 0.5,
    do({ server, dice }) {
      const turn = dice.pick(server.list(turns));
      return turn && server.admin.delete(turns, turn.metadata as { name: string }).catch(() => {});
    },
  },
  {
    name: 'decide on a request',
    weight: 6,
    do(users, number) {
      const { server, dice } = users;
      const turn = dice.pick(server.list(turns).filter(({ status }) => status?.approval !== undefined));
      return turn && decide(users, turn, `a${number}`, dice.chance(0.1) ? 'another' : turn.status?.approval?.id);
    },
  },
  {
    name: 'take a decision back',
    weight: 0.3,
    do({ server, dice }) {
      const approval = dice.pick(server.list(approvals));
      return approval && server.admin.delete(approvals, approval.metadata).catch(nothing);
    },
  },
  {
    name: 'touch a session',
    weight: 1,
    do({ server, dice }) {
      const session = dice.pick(server.list(sessions));
      const at = new Date(server.clock.now()).toISOString();
      return session && note(server, sessions, session, { annotations: { [ANNOTATION_TOUCHED_AT]: at } });
    },
  },
  {
    name: 'look at a session, and put a label on it',
    weight: 1,
    do({ server, dice }, number) {
      const session = dice.pick(server.list(sessions));
      return session && note(server, sessions, session, { labels: { 'seen-by': `n${number}` } });
    },
  },
  {
    name: 'change what a session may take',
    weight: 1,
    do: ({ server, dice }) =>
      change(server, dice, {
        priority: dice.int(-3, 3),
        timeouts: { idle: `${dice.int(5, 60)}s` },
        ...someHistory(dice),
      }),
  },
  {
    name: 'edit a class',
    weight: 0.5,
    do({ server, dice, scheduler }, number) {
      const sessionClass = dice.pick(server.list(sessionclasses));
      if (!sessionClass) return undefined;
      const spec = { image: `runner:${dice.int(1, 9)}` };
      const rules = dice.stream(`rules ${number}`);
      if (!rules.chance(0.2)) return edit(server, sessionclasses, sessionClass, { ...spec, ...someRules(rules) });
      // The class is deleted by mistake and applied again.
      const { name } = sessionClass.metadata;
      const { maxTimeouts: _, redact: _r, ...sound } = sessionClass.spec;
      scheduler.after(rules.skewed(1000, 60_000), undefined, `user: class ${name} again`, () => {
        void create(server, sessionclasses, undefined, name, { ...sound, ...spec });
      });
      return server.admin.delete(sessionclasses, { name }).catch(nothing);
    },
  },
  {
    name: 'edit the limits of a class',
    weight: 0.7,
    do({ server, dice }) {
      const sessionClass = dice.pick(server.list(sessionclasses));
      return sessionClass && edit(server, sessionclasses, sessionClass, someLimits(dice));
    },
  },
  {
    name: 'label a namespace',
    weight: 0.4,
    do({ server, dice }) {
      const metadata = { name: dice.pick(NAMESPACES) };
      return note(server, namespaces, { metadata }, { labels: { tier: dice.pick(TIERS) } });
    },
  },
];

function change(server: SimServer, dice: Dice, spec: object): Promise<unknown> | undefined {
  const session = dice.pick(server.list(sessions));
  return session && edit(server, sessions, session, spec);
}
