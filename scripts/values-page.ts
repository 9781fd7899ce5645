import { isMap, type Node, type Pair, parseDocument, type Scalar, type YAMLMap } from 'yaml';

interface Row {
  path: string;
  /** Default; absent for a group of values. */
  byDefault?: unknown;
  meaning: string;
}

/** Fields whose default is shown as a whole, because what is in them are no values of the chart: `api.limits` alone has some. */
const WHOLE = /\.(requests|max[A-Z]\w+)$|\.(resources|spec)\.limits$/;

const oneLine = (comment: string | null | undefined) =>
  (comment ?? '')
    .split('\n')
    .map((line) => line.trim())
    .join(' ')
    .trim();

/** The comment above a field. The parser gives that of the first field to the map, and what follows an empty line to the document. */
function commentOf(pair: Pair, map: YAMLMap, isFirst: boolean): string {
  const own = oneLine((pair.key as Scalar).commentBefore);
  return isFirst ? oneLine(map.commentBefore) || own : own;
}

/**
 * Rows of the fields of a map. `explained`: a comment stands above the map, which is enough for its fields. Throws an Error for a field that nothing
 * explains.
 */
function rowsOf(map: YAMLMap, prefix: string, explained: boolean): Row[] {
  return (map.items as Pair[]).flatMap((pair, index) => {
    const path = `${prefix}${(pair.key as Scalar).value}`;
    const meaning = commentOf(pair, map, index === 0);
    const { value } = pair;
    if (isMap(value) && value.items.length > 0 && !WHOLE.test(path)) {
      const below = rowsOf(value, `${path}.`, explained || meaning !== '');
      return meaning === '' ? below : [{ path, meaning }, ...below];
    }
    if (meaning === '' && !explained)
      throw new Error(`charts/berth/values.yaml: ${path} has no comment; say what it means`);
    return [{ path, byDefault: (value as Node | null)?.toJSON() ?? null, meaning }];
  });
}

const cell = (text: string) => text.replaceAll('|', '\\|');

/** Returns the page of the chart's values. `source`: values.yaml, whose comments are the meanings. `notice`: how it is made. */
export function valuesPage(source: string, notice: string): string {
  const document = parseDocument(source);
  const map = document.contents as unknown as YAMLMap;
  map.commentBefore ??= document.commentBefore;
  const rows = rowsOf(map, '', false).map(({ path, byDefault, meaning }) => {
    const shown = byDefault === undefined ? '' : ` \`${cell(JSON.stringify(byDefault))}\``;
    return `| \`${path}\` |${shown} |${meaning && ` ${cell(meaning)}`} |`;
  });
  return [
    '# Values of the chart',
    '',
    `<!-- ${notice} -->`,
    '',
    '[Installing](../install.md#chart) has those that most people set. `helm show values charts/berth` prints the file that this page is made of. A row without',
    'a default is about the values below it. The chart refuses values that it does not know, and says what is wrong with others.',
    '',
    '| value | default | meaning |',
    '| --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
