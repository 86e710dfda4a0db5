/**
 * `node build/run.ts bench/fabric-point 8`: the cost of a process that simulates this many hosts on one switch, each sending
 * messages to one other, in one thread. The messages of all hosts together are as many with any number of hosts. `npm run
 * bench` measures each number in a fresh process, whose memory has no history.
 */
import '../runtime/node.ts';
import { loadTraffic } from '../experiments/runs/fabric-run.ts';
import { Machine } from '../machine/index.ts';
import { parsedTopology } from '../machine/topology/index.ts';

const messagesOfAll = 32_768;
const sizeBytes = 1024;
const window = 16;

export interface FabricCosts {
  readonly hosts: number;
  /** CPU cost of the messages only: that of hosts, devices and connections is subtracted. */
  readonly cpuUsPerMessage: number;
  readonly eventsPerSecond: number;
  readonly wallMsPerSimulatedMs: number;
  /** Memory that became resident with the first run, for each host. */
  readonly residentMibPerHost: number;
}

interface Run {
  readonly cpuUs: number;
  readonly events: number;
  readonly wallMs: number;
  readonly simulatedMs: number;
  readonly residentMib: number;
}

const residentMib = (): number => process.memoryUsage().rss / 2 ** 20;

async function run(hosts: number, messages: number): Promise<Run> {
  const topology = parsedTopology(`star:${hosts}`);
  await using machine = await Machine.create({ topology });
  await loadTraffic(machine, {
    pattern: 'permutation',
    verb: 'write',
    hostCount: hosts,
    sizeBytes,
    messages,
    window,
  });
  const begun = process.cpuUsage();
  await machine.run();
  const { user, system } = process.cpuUsage(begun);
  const { wallMs, events, records, clockEdges } = await machine.runFacts();
  return {
    cpuUs: user + system,
    events: events + records + clockEdges,
    wallMs,
    simulatedMs: machine.nowPs / 1e9,
    residentMib: residentMib(),
  };
}

async function costsOf(hosts: number): Promise<FabricCosts> {
  const messages = messagesOfAll / hosts;
  const beforeMib = residentMib();
  const first = await run(hosts, messages / 4);
  const setUp = await run(hosts, 1);
  const whole = await run(hosts, messages);
  const wallMs = whole.wallMs - setUp.wallMs;
  return {
    hosts,
    cpuUsPerMessage: (whole.cpuUs - setUp.cpuUs) / (messagesOfAll - hosts),
    eventsPerSecond: ((whole.events - setUp.events) / wallMs) * 1000,
    wallMsPerSimulatedMs: wallMs / (whole.simulatedMs - setUp.simulatedMs),
    residentMibPerHost: (first.residentMib - beforeMib) / hosts,
  };
}

process.stdout.write(`${JSON.stringify(await costsOf(Number(process.argv[2] ?? '8')))}\n`);
