/**
 * `node build/run.ts bench/connections 1024 iwarp`: the cost of a process that simulates this many connected QPs at each
 * of two hosts, on InfiniBand or the named network, and of one WRITE over them. `npm run bench` measures each number in a
 * fresh process, whose memory has no history.
 */
import '../runtime/node.ts';
import { ConfigurationError } from '../base/index.ts';
import { Machine } from '../machine/index.ts';
import type { ConnectionFigures, ConnectionLoad } from './connection-load.ts';
import { type Network, networks } from './networks.ts';

/** Physical memory of each host: 8 KiB for each connection, and a fixed amount. */
const memoryMibOf = (qps: number): number => Math.min(4096, 512 + Math.ceil(qps / 128));
/** Bytes of a card's memory for an unacknowledged segment: each connection has one, because acknowledgements are delayed. */
const segmentBytes = 2048;
const writes = 50_000;
const inFlight = 64;

/** Room for that many TCP connections, and a listener. */
function iwarpOf(qps: number) {
  const log = Math.max(12, Math.ceil(Math.log2(qps + 2)));
  return {
    'hca.iwarp.retransmissionBytes': (qps + inFlight) * segmentBytes,
    'hca.capability.logMaxTcpConnections': log,
    'driver.logTcpConnections': log,
  };
}

export interface ConnectionCosts extends ConnectionFigures {
  readonly qps: number;
  /** Processor time of the whole process without the measured WRITEs. */
  readonly setUpSeconds: number;
}

async function figuresOf(qps: number, network: Network): Promise<ConnectionCosts> {
  const url = new URL(`./connection-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const load: ConnectionLoad = { qps, writes, inFlight };
  const args = load;
  const begun = process.cpuUsage();
  const set = {
    ...networks[network],
    'host.memory.sizeMib': memoryMibOf(qps),
    ...(network === 'iwarp' ? iwarpOf(qps) : {}),
  };
  await using machine = await Machine.create({ set });
  await machine.load({ node: 0, run: { url, exportName: 'client' }, args });
  await machine.load({ node: 1, run: { url, exportName: 'server' }, args });
  await machine.run();
  const { user, system } = process.cpuUsage(begun);
  const [figures] = await machine.results<[ConnectionFigures]>();
  const setUpSeconds = (user + system - writes * figures.cpuUsPerWrite) / 1e6;
  return { qps, ...figures, setUpSeconds };
}

const isNetwork = (name: string): name is Network => name in networks;
const [qps = '1', network = 'infiniband'] = process.argv.slice(2);
if (!isNetwork(network))
  throw new ConfigurationError('network', network, `one of ${Object.keys(networks).join(', ')}`);
process.stdout.write(`${JSON.stringify(await figuresOf(Number(qps), network))}\n`);
