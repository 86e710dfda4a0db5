/**
 * `node build/run.ts bench/connections 1024`: what a process needs that simulates so many connected QPs at each of two hosts, and
 * what one WRITE over them costs it. `npm run bench` measures each number in a process of its own, whose memory has no past.
 */
import '../runtime/node.ts';
import { Machine } from '../machine/index.ts';
import type { ConnectionFigures, ConnectionLoad } from './connection-load.ts';

/** Physical memory of each host: 8 KiB for a connection and what else there is. */
const memoryMibOf = (qps: number): number => Math.min(4096, 512 + Math.ceil(qps / 128));
const writes = 50_000;
const inFlight = 64;

export interface ConnectionCosts extends ConnectionFigures {
  readonly qps: number;
  /** Processor time of the whole process but the WRITEs that are measured. */
  readonly setUpSeconds: number;
}

async function figuresOf(qps: number): Promise<ConnectionCosts> {
  const url = new URL(`./connection-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const load: ConnectionLoad = { qps, writes, inFlight };
  const args = load;
  const begun = process.cpuUsage();
  await using machine = await Machine.create({ set: { 'host.memory.sizeMib': memoryMibOf(qps) } });
  await machine.load({ node: 0, run: { url, exportName: 'client' }, args });
  await machine.load({ node: 1, run: { url, exportName: 'server' }, args });
  await machine.run();
  const { user, system } = process.cpuUsage(begun);
  const [figures] = await machine.results<[ConnectionFigures]>();
  const setUpSeconds = (user + system - writes * figures.cpuUsPerWrite) / 1e6;
  return { qps, ...figures, setUpSeconds };
}

const [qps] = process.argv.slice(2).map(Number);
process.stdout.write(`${JSON.stringify(await figuresOf(qps ?? 1))}\n`);
