/**
 * Logs of pods as callers may see them. A runner redacts what it writes. A program without a runner writes to its pod's
 * log itself, so its text is redacted here by the rules by which the controller redacts the log of its turn.
 */
import { StringDecoder } from 'node:string_decoder';
import { ifThere } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import type { KubeApi, ObjectRef } from '../../core/kube/types.ts';
import { sessionclasses } from '../../core/resources/kinds.ts';
import { ANNOTATION_REDACTION, LABEL_RUNNER } from '../../core/resources/names.ts';
import { hiddenByRules, redactionOf } from '../../core/resources/redaction.ts';
import type { Rules } from '../../core/text/hidden.ts';
import { Redactor } from '../../core/text/redact.ts';

const NEWLINE = 0x0a;
const SPACE = 0x20;

type Api = Pick<KubeApi, 'get' | 'list' | 'watch' | 'podLog'>;

/** Reads logs of the pods of one session, redacted; else as `api` does. */
export function shownLogs(api: Api, { class: className }: { class: string }): Api {
  return {
    get: (resource, ref, options) => api.get(resource, ref, options),
    list: (resource, options) => api.list(resource, options),
    watch: (resource, options) => api.watch(resource, options),
    async *podLog(ref, options) {
      const rules = await rulesFor(api, ref, className, options.signal);
      const log = api.podLog(ref, options);
      if (rules) yield* redacted(log, rules, options.timestamps === true);
      else yield* log;
    },
  };
}

/** Rules for the log of a pod without a runner; undefined for one that has a runner. */
async function rulesFor(
  api: Pick<KubeApi, 'get'>,
  ref: ObjectRef,
  className: string,
  signal: AbortSignal | undefined,
): Promise<Rules | undefined> {
  const options = signal ? { signal } : {};
  const pod = await api.get(pods, ref, options);
  if (pod.metadata.labels?.[LABEL_RUNNER] !== 'None') return undefined;
  if (pod.metadata.annotations?.[ANNOTATION_REDACTION] !== undefined)
    return hiddenByRules(redactionOf(pod, undefined)).logs;
  const present = await ifThere(api.get(sessionclasses, { name: className }, options));
  return hiddenByRules(redactionOf(pod, present)).logs;
}

/**
 * Redacts each line for itself, so that a line which is read again is the same again. No rule reaches beyond a line
 * where no values of Secrets are known. With `stamped` the text of a line begins after its first space.
 */
async function* redacted(log: AsyncIterable<Buffer>, rules: Rules, stamped: boolean): AsyncGenerator<Buffer> {
  const redactor = new Redactor(rules);
  const decoder = new StringDecoder('utf8');
  const endOfLine = () => redactor.push(decoder.end()) + redactor.end();
  let inStamp = stamped;
  for await (const chunk of log) {
    const pieces: Buffer[] = [];
    for (let at = 0; at < chunk.length; ) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline < 0 ? chunk.length : newline + 1;
      if (inStamp) {
        const space = chunk.subarray(at, end).indexOf(SPACE);
        const stop = space < 0 ? end : at + space + 1;
        pieces.push(chunk.subarray(at, stop));
        inStamp = space < 0;
        at = stop;
        continue;
      }
      let text = redactor.push(decoder.write(chunk.subarray(at, newline < 0 ? end : newline)));
      if (newline >= 0) {
        text += `${endOfLine()}\n`;
        inStamp = stamped;
      }
      pieces.push(Buffer.from(text));
      at = end;
    }
    const bytes = Buffer.concat(pieces);
    if (bytes.length > 0) yield bytes;
  }
  const rest = endOfLine();
  if (rest) yield Buffer.from(rest);
}
