import { eventually } from './eventually.ts';
import type { ControllerProcess } from './installation.ts';

/** The samples of a text for Prometheus, as `name{labels}` → value, with the labels in the order in which they are written. */
function samples(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** Those of one metric, without its name. */
export function samplesOf(text: string, metric: string): Record<string, number> {
  const mine = [...samples(text)].filter(([key]) => key === metric || key.startsWith(`${metric}{`));
  return Object.fromEntries(mine.map(([key, value]) => [key.slice(metric.length), value]));
}

/** What the controller says at /metrics. Its port is any, and stands in its log. */
export async function metricsOf(controller: ControllerProcess): Promise<string> {
  const port = await eventually(() => /"health":\{[^}]*"port":(\d+)/.exec(controller.log())?.[1], {
    what: 'the controller listens',
  });
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}: ${await answer.text()}`);
  return answer.text();
}
