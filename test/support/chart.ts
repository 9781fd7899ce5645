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

/** Renders the chart as release `berth` in `berth-system` with values as for `--set`. Rejects with Helm's message. */
export const render = (...values: string[]) => renderAs('berth', 'berth-system', ...values);

export const renderAs = (release: string, namespace: string, ...values: string[]) =>
  renderChart(join(CHARTS, 'berth'), release, namespace, ...REQUIRED, ...values);

/** Renders the chart of a folder or an archive. */
export async function renderChart(
  chart: string,
  release: string,
  namespace: string,
  ...values: string[]
): Promise<Any[]> {
  const { helm } = await tools();
  const args = ['template', release, chart, '--namespace', namespace, ...values.flatMap((value) => ['--set', value])];
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
