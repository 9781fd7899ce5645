import type { Attachment } from './attachment.ts';
import type { Binding } from './binding.ts';
import type { ControlLines } from './control-lines.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Shown } from './view.ts';

/** Parts of a link that the others use. */
export interface LinkParts {
  /** What the link shows. */
  shown: Shown;
  /** Who is at the other end, and the keys. */
  binding: Binding;
  /** The connection. */
  attachment: Attachment;
  /** What goes out. */
  lines: ControlLines;
  /** Whether answers are owed. */
  heartbeat: Heartbeat;
}
