/**
 * `node bench/connections.ts 1 64 1024`: what a process needs that simulates so many connected QPs at each of two hosts, and
 * what one WRITE over them costs it. Each number is measured in a process of its own, whose memory has no past.
 */
import '../runtime/node.ts';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Machine } from '../system/machine/machine.ts';
import type { JsonValue } from '../system/machine/program.ts';
import type { ConnectionFigures, ConnectionLoad } from './connection-load.ts';

/** Physical memory of each host: 8 KiB for a connection and what else there is. */
const memoryMibOf = (qps: number): number => Math.min(4096, 512 + Math.ceil(qps / 128));
const writes = 10_000;
const inFlight = 64;

async function figuresOf(qps: number): Promise<ConnectionFigures & { readonly setUpSeconds: number }> {
  const url = new URL(`./connection-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const load: ConnectionLoad = { qps, writes, inFlight };
  const args = load as unknown as JsonValue;
  const begun = process.cpuUsage();
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': memoryMibOf(qps) } });
  await machine.load({ node: 0, run: { url, exportName: 'client' }, args });
  await machine.load({ node: 1, run: { url, exportName: 'server' }, args });
  await machine.run();
  const { user, system } = process.cpuUsage(begun);
  const [figures] = (await machine.results()) as unknown as [ConnectionFigures];
  return { ...figures, setUpSeconds: (user + system) / 1e6 };
}

const [first, ...others] = process.argv.slice(2).map(Number);
if (first === undefined) {
  process.stderr.write('usage: node bench/connections.ts <QPs>...\n');
} else if (others.length === 0) {
  process.stdout.write(`${JSON.stringify({ qps: first, ...(await figuresOf(first)) })}\n`);
} else {
  for (const qps of [first, ...others])
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), String(qps)], { stdio: 'inherit' });
}
