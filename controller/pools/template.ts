import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { CachedSession, Installation, Problem } from '../observed/world.ts';
import { templateHash } from '../pod/pod.ts';
import { type Effective, effective, isProblem } from '../settings/effective.ts';

/** Settings of the pods of a pool. */
export interface PoolTemplate {
  hash: string;
  settings: Effective;
}

/**
 * The settings of a session that sets nothing itself, which the pods of a pool are made with, or the problem that keeps the
 * class from having a pool.
 */
export function poolTemplate(
  { namespace, class: ofClass }: { namespace: string; class: string },
  sessionClass: StoredSessionClass | undefined,
  installation: Installation,
  namespaceLabels?: Readonly<Record<string, string>>,
): PoolTemplate | Problem {
  if (!sessionClass) {
    const message = `spec.class: there is no SessionClass "${ofClass}"; create it, or name one of \`kubectl get sessionclasses\`.`;
    return { reason: 'ClassNotFound', message };
  }
  if (sessionClass.spec.runner === 'None') {
    const message = `spec.class: pods of class "${ofClass}" have no runner (runner: None) that could wait for a session; name another class.`;
    return { reason: 'InvalidSpec', message };
  }
  const blank = { metadata: { namespace }, spec: { class: ofClass, turns: 'Many' } } as unknown as CachedSession;
  const settings = effective(blank, withProgram(sessionClass), installation, namespaceLabels);
  if (isProblem(settings)) {
    return {
      ...settings,
      message: `A session that sets nothing itself could not start, nor can a pod of the pool: ${settings.message}`,
    };
  }
  if (settings.kept.workspace) {
    const message = `spec.class: each session of class "${ofClass}" has a volume of its own (persistence.workspace), which a pod gets when it is made; name another class, or let sessions ask for their volumes themselves.`;
    return { reason: 'InvalidSpec', message };
  }
  return { hash: templateHash(ofClass, settings), settings };
}

/**
 * The class with some program in place of its own. Sessions of many classes bring theirs, and nothing of a pod depends on it
 * except the Secrets that the class gives it.
 */
function withProgram(sessionClass: StoredSessionClass): StoredSessionClass {
  const { env, secretFiles } = sessionClass.spec.agent ?? {};
  const agent = { command: ['true'], ...(env ? { env } : {}), ...(secretFiles ? { secretFiles } : {}) };
  return { ...sessionClass, spec: { ...sessionClass.spec, agent } };
}
