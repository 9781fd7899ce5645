/** Makes the sync half of the Python client from its async half, word by word. */

/** Words of the async half, as patterns, and what stands in their place. They are replaced in this order. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\basync (def|with|for)\b/g, '$1'],
  [/\bawait /g, ''],
  [/\bAwaitable\[(\w+)\]/g, '$1'],
  [/\bAwaitable, /g, ''],
  [/\bAsyncGenerator\[(.+?), None\]/g, 'Generator[$1, None, None]'],
  [/\basynccontextmanager\b/g, 'contextmanager'],
  [/\benter_async_context\b/g, 'enter_context'],
  [/\b__a(enter|exit|iter|next)__\b/g, '__$1__'],
  [/\ba(close|closing|next|iter_raw)\b/g, '$1'],
  [/\bStopAsyncIteration\b/g, 'StopIteration'],
  [/\b_async\b/g, '_sync'],
  [/\bAsync(?=[A-Z])/g, ''],
];

/** Returns the sync form of a file of the async half. */
export function pythonSync(source: string, notice: string): string {
  const text = WORDS.reduce((text, [pattern, word]) => text.replace(pattern, word), source);
  return `# ${notice}\n${text}`;
}
