import { eventually } from './eventually.ts';
import type { ControllerProcess } from './installation.ts';

/** Parses the samples of a Prometheus text, as `name{labels}` → value, with the labels in their written order. */
function samples(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** Returns the samples of one metric, without its name. */
export function samplesOf(text: string, metric: string): Record<string, number> {
  const mine = [...samples(text)].filter(([key]) => key === metric || key.startsWith(`${metric}{`));
  return Object.fromEntries(mine.map(([key, value]) => [key.slice(metric.length), value]));
}

/** Reads the controller's /metrics. Its port is arbitrary and is found in its log. */
export async function metricsOf(controller: ControllerProcess): Promise<string> {
  const port = await eventually(() => /"health":\{[^}]*"port":(\d+)/.exec(controller.log())?.[1], {
    what: 'the controller listens',
  });
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}: ${await answer.text()}`);
  return answer.text();
}
