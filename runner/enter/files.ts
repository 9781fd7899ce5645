import type { Root } from '../../core/enter/hello.ts';
import type { Door } from './listen.ts';
import type { Roots } from './roots.ts';
import type { Visit } from './visit.ts';

/** Serves what is wanted of files: the helper gets an order, and the client has to do with it alone from then on. */
export function fileDoor(roots: Roots): Door {
  return (visit) => {
    order(visit, roots).catch((error: Error) => visit.refuse({ code: 'FileFailed', message: error.message }));
  };
}

async function order(visit: Visit, roots: Roots): Promise<void> {
  const { hello } = visit;
  if (!('root' in hello)) return;
  const { want, root, path } = hello;
  const folder = await roots(root);
  if (folder === undefined) {
    visit.refuse({ code: 'FileNotFound', message: `the session has no ${root}: ${WITHOUT[root]}`, field: 'root' });
    return;
  }
  const { offset = 0, length = -1 } = want === 'read' ? hello : {};
  const fields = [want, root, folder, path, offset, length];
  visit.send('order', Buffer.from(fields.map((field) => `${field}\0`).join('')));
}

const WITHOUT: Record<Root, string> = {
  work: 'it has no working directory',
  workspace: 'its class gives it no volume',
  state: 'it keeps none',
  output: 'its class keeps no artifacts',
  agent: 'its agent came without files',
};
