/** Objects of the chart as Helm renders them, without a cluster. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { tools } from './tools.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
export type Any = any;

/** Folder of the charts. */
export const CHARTS = join(import.meta.dirname, '..', '..', 'charts');

/** Values without which the chart refuses to be rendered, as for `--set`. */
export const REQUIRED = ['image.registry=registry.example.com', 'image.tag=1.2.3-g1a2b3c4d'];

/**
 * Renders the chart as release `berth` in `berth-system` with values as for `--set`, without what `helm test` makes. Rejects with
 * Helm's message.
 */
export const render = (...values: string[]) => renderAs('berth', 'berth-system', ...values);

export const renderAs = (release: string, namespace: string, ...values: string[]) =>
  renderChart(join(CHARTS, 'berth'), release, namespace, '--skip-tests', ...settings(REQUIRED, values));

/** As `render`, with what `helm test` makes. */
export const renderWithTests = (...values: string[]) =>
  renderChart(join(CHARTS, 'berth'), 'berth', 'berth-system', ...settings(REQUIRED, values));

const settings = (...values: string[][]) => values.flat().flatMap((value) => ['--set', value]);

/** Renders the chart of a folder or an archive with the flags of `helm template`. */
export async function renderChart(
  chart: string,
  release: string,
  namespace: string,
  ...flags: string[]
): Promise<Any[]> {
  const { helm } = await tools();
  const args = ['template', release, chart, '--namespace', namespace, ...flags];
  const { stdout } = await promisify(execFile)(helm, args, { maxBuffer: 16 * 1024 * 1024 });
  return parseAllDocuments(stdout).flatMap((document) => {
    // Helm itself takes a key that is there twice.
    const [error] = document.errors;
    if (error) throw error;
    return document.toJS() ?? [];
  });
}

export const find = (objects: Any[], kind: string, name: string): Any =>
  objects.find((object) => object.kind === kind && object.metadata.name === name);
