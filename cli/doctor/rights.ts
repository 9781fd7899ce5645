import { API_GROUP } from '../../core/resources/names.ts';
import { isAllowed } from '../cluster/access.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { error, type Found, ok, warning } from './finding.ts';

interface Right {
  verb: string;
  resource: string;
  group?: string;
}

const of = (verbs: string[], resource: string): Right[] => verbs.map((verb) => ({ verb, resource, group: API_GROUP }));

/** Rights that commands need, by what people do with them. `role`: ClusterRole of the chart that has those of Berth's kinds. */
const NEEDED: { what: string; role: string; rights: Right[] }[] = [
  {
    what: 'look at sessions and turns',
    role: 'berth-view',
    rights: [
      ...of(['get', 'list', 'watch'], 'sessions'),
      ...of(['get', 'list', 'watch'], 'turns'),
      { verb: 'get', resource: 'pods/log' },
    ],
  },
  {
    what: 'run sessions and turns',
    role: 'berth-edit',
    rights: [...of(['create', 'patch', 'delete'], 'sessions'), ...of(['create', 'patch'], 'turns')],
  },
  {
    what: 'see classes before a session is created',
    role: 'berth-view',
    rights: of(['get', 'list'], 'sessionclasses'),
  },
  { what: 'read large outputs and artifacts', role: 'berth-view', rights: of(['get'], 'blobs') },
  { what: 'decide on approvals', role: 'berth-approve', rights: of(['create'], 'approvals') },
  {
    what: 'enter sessions (exec, cp, port-forward)',
    role: 'edit',
    rights: [{ verb: 'create', resource: 'pods/exec' }],
  },
];

/** Asks what the caller may do in the namespace. */
export async function rightsFound({ api, namespace }: KubeCluster, signal: AbortSignal): Promise<Found[]> {
  const may = ({ verb, resource: full, group = '' }: Right): Promise<boolean> => {
    const [resource = '', subresource] = full.split('/');
    return isAllowed(api, { namespace, verb, group, resource, ...(subresource ? { subresource } : {}) }, signal);
  };
  const asked = await Promise.all(
    NEEDED.map(async ({ what, role, rights }) => {
      const answers = await Promise.all(rights.map(may));
      const lacking = rights.filter((_, index) => !answers[index]).map(({ verb, resource }) => `${verb} ${resource}`);
      return { what, role, lacking };
    }),
  );
  const held = asked.filter(({ lacking }) => lacking.length === 0).map(({ what }) => what);
  const good = held.length > 0 ? [ok(`in namespace ${namespace} you may ${held.join('; ')}`)] : [];
  const bad = asked.flatMap(({ what, role, lacking }, index) => {
    if (lacking.length === 0) return [];
    const message = `in namespace ${namespace} you may not ${what}: ${lacking.join(', ')}`;
    const act = `if you need that, ask for a RoleBinding to the ClusterRole ${role} (docs/install.md#rights)`;
    // Nothing works without the first of them.
    return [index === 0 ? error(message, act) : warning(message, act)];
  });
  return [...good, ...bad];
}
