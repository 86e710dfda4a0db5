/**
 * `node build/run.ts bench/connections 1024`: the cost of a process that simulates this many connected QPs at each of
 * two hosts, and of one WRITE over them. `npm run bench` measures each number in a fresh process, whose memory has no
 * history.
 */
import '../runtime/node.ts';
import { Machine } from '../machine/index.ts';
import type { ConnectionFigures, ConnectionLoad } from './connection-load.ts';

/** Physical memory of each host: 8 KiB for each connection, and a fixed amount. */
const memoryMibOf = (qps: number): number => Math.min(4096, 512 + Math.ceil(qps / 128));
const writes = 50_000;
const inFlight = 64;

export interface ConnectionCosts extends ConnectionFigures {
  readonly qps: number;
  /** Processor time of the whole process without the measured WRITEs. */
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
