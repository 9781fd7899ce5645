/** A worker that asks for a page as fast as it is answered, on many connections, until it is terminated. */
import { workerData } from 'node:worker_threads';
import { Pool } from 'undici';

export interface Greed {
  origin: string;
  path: string;
  token: string;
  connections: number;
}

const { origin, path, token, connections } = workerData as Greed;
const pool = new Pool(origin, { connections });
const headers = { authorization: `Bearer ${token}` };

async function ask(): Promise<never> {
  for (;;) {
    const { body } = await pool.request({ method: 'GET', path, headers });
    await body.dump();
  }
}

await Promise.all(Array.from({ length: connections }, ask));
