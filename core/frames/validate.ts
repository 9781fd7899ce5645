/** Checks the messages of a pod. Its frames are sealed, but its runner shares a machine with its agent. */
import { tooDeepAt } from '../depth.ts';
import type { FrameKind } from './catalogue.ts';
import { schemas } from './schemas.ts';

/** Depth that only a broken runner exceeds. Older runners let agents return 256 levels. */
const MAX_DEPTH = 512;

/** Returns the checked message without unknown fields, which a newer runner may send, or the problem with it. */
export function validateFrame(
  kind: string,
  message: Record<string, unknown>,
): { message: object } | { problem: string } {
  if (!Object.hasOwn(schemas, kind)) return { problem: `there is no message "${kind}"` };
  // The depth is checked before any recursive code reads the message.
  const place = tooDeepAt(message, kind, MAX_DEPTH);
  if (place !== undefined) return { problem: `${place}: nested deeper than ${MAX_DEPTH} levels` };
  const checked = schemas[kind as FrameKind].safeParse(message);
  if (checked.success) return { message: checked.data };
  const issue = checked.error.issues[0];
  return { problem: `${issue?.path.join('.') || kind}: ${issue?.message ?? 'not valid'}` };
}
