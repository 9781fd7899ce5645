/**
 * Benchmarks that need no Kubernetes: `make bench-runner`. Prints Markdown; build/bench-runner.json has every value.
 */
import { rmSync } from 'node:fs';
import { stagedCommand, stageImage } from '../support/contained-runner.ts';
import { corpora } from './corpora.ts';
import { drivers } from './drivers.ts';
import { embedded } from './embedded.ts';
import { type Figure, publish } from './figures.ts';
import { http } from './http.ts';
import { logShare } from './log-share.ts';
import { output } from './output.ts';
import { python } from './python.ts';

/** All of it, one after the other, so that nothing weighs on anything else. */
export async function runnerFigures(): Promise<Figure[]> {
  const image = stageImage();
  try {
    const command = stagedCommand(image);
    return [
      ...(await drivers(command)),
      ...(await embedded()),
      ...(await http()),
      ...(await python()),
      ...(await output(command)),
      ...(await logShare(command)),
      ...(await corpora()),
    ];
  } finally {
    rmSync(image, { recursive: true, force: true });
  }
}

if (import.meta.main) publish('bench-runner', await runnerFigures());
