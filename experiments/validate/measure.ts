/** Runs a point that perf cannot express: a machine, the programs of this room, and the figures of their results. */

import { InvariantError } from '../../base/index.ts';
import {
  configuredOf,
  type JsonLike,
  Machine,
  type MachineOptions,
  type Report,
} from '../../machine/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { hostsOf } from '../../machine/topology/index.ts';
import { type DeviceQuery, type FabricSide, type KvSide, perfArgsOf } from '../workloads/index.ts';
import { constantFigures } from './constants.ts';
import type { FabricPoint, Figures, PerfPoint, StorePoint, StreamPlan, Workload } from './points.ts';
import type { PingPongResult } from './programs/ping-pong.ts';
import type { RegistrationResult } from './programs/registration.ts';
import type { StreamArgs, StreamResult } from './programs/stream.ts';
import type { TimerResult } from './programs/timer.ts';
import { flowFigures, requestFigures, streamFigures } from './rates.ts';
import { slotFigures } from './slot.ts';

const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const urlOf = (path: string): URL => new URL(`${path}${ending}`, import.meta.url);
const programs = {
  stream: urlOf('./programs/stream'),
  registration: urlOf('./programs/registration'),
  timer: urlOf('./programs/timer'),
  pingPong: urlOf('./programs/ping-pong'),
  device: urlOf('../workloads/device-query'),
  fabric: urlOf('../workloads/fabric-traffic'),
  storeClient: urlOf('../workloads/kv-client'),
  storeServer: urlOf('../workloads/kv-server'),
} as const;

export async function measure(
  workload: Exclude<Workload, PerfPoint>,
  options: MachineOptions,
): Promise<Figures> {
  switch (workload.kind) {
    case 'constant':
      return constantFigures(configurationOf(options));
    case 'slot':
      return slotFigures(configurationOf(options), workload);
    case 'stream':
      return streamOf(workload.plan, options);
    case 'fabric':
      return fabricOf(workload, options);
    case 'store':
      return storeOf(workload, options);
    case 'device': {
      const { results } = await runOn(options, [
        { node: 0, url: programs.device, exportName: 'queryFirstDevice' },
      ]);
      const { device } = results[0] as DeviceQuery;
      return { readsPerQp: device.maxQpRdAtom };
    }
    case 'registration': {
      const args = workload;
      const { results } = await runOn(options, [
        { node: 0, url: programs.registration, exportName: 'registrar', args },
      ]);
      const { registerPs, deregisterPs } = results[0] as RegistrationResult;
      return { registerUs: registerPs / 1e6, deregisterUs: deregisterPs / 1e6 };
    }
    case 'pingPong': {
      const { results } = await runOn(
        options,
        [0, 1].map((node) => ({ node, url: programs.pingPong, exportName: 'pingPong', args: workload })),
      );
      return { roundTripUs: (results[0] as PingPongResult).roundTripPs / 1e6 };
    }
    case 'timer': {
      const args = workload;
      const { results } = await runOn(
        options,
        ['timerRequester', 'timerResponder'].map((exportName, node) => ({
          node,
          url: programs.timer,
          exportName,
          args,
        })),
      );
      return { elapsedUs: (results[0] as TimerResult).elapsedPs / 1e6 };
    }
  }
}

async function streamOf(plan: StreamPlan, options: MachineOptions): Promise<Figures> {
  // One core belongs to the kernel, unless the row requests a number.
  const set = { 'host.core.count': plan.threads + 1, ...options.set };
  const orders = Array.from({ length: 2 * plan.threads }, (_, at) => {
    const args: StreamArgs = { plan, thread: at >> 1 };
    return {
      node: at & 1,
      url: programs.stream,
      exportName: 'streamThread',
      args,
      ...(plan.isOneProcess === true ? { process: 'threads' } : {}),
    };
  });
  const { results, report } = await runOn({ ...options, set }, orders);
  const ofNode = (node: number): StreamResult[] =>
    results.filter(
      (result, at) => (at & 1) === node && result !== null && result !== undefined,
    ) as StreamResult[];
  return streamFigures(plan, [ofNode(0), ofNode(1)], report);
}

async function fabricOf({ args }: FabricPoint, options: MachineOptions): Promise<Figures> {
  const hostCount = hostsOf(configuredOf(options).topology).length;
  const { results } = await runOn(
    options,
    Array.from({ length: hostCount }, (_, node) => ({
      node,
      url: programs.fabric,
      exportName: 'fabricHost',
      args: { ...args, hostCount },
    })),
  );
  const sides = results as FabricSide[];
  const wrong = sides.flatMap((side) => side.wrong);
  if (wrong.length > 0) throw new InvariantError('flows with wrong bytes', wrong.length, '0');
  return flowFigures(args, sides);
}

async function storeOf({ test }: StorePoint, options: MachineOptions): Promise<Figures> {
  const args = perfArgsOf(test);
  const { threads = 1, kv } = args;
  const server = hostsOf(configuredOf(options).topology).length - 1;
  const programOf = (end: 'Client' | 'Server', node: number, thread: number): Order => ({
    node,
    url: programs[`store${end}`],
    exportName: `kv${end}`,
    ...(end === 'Server' ? { process: 'server' } : {}),
    args: { ...args, thread },
  });
  const { results } = await runOn(options, [
    ...Array.from({ length: threads }, (_, thread) => programOf('Client', thread % server, thread)),
    ...Array.from({ length: kv!.servers }, (_, thread) => programOf('Server', server, thread)),
  ]);
  return requestFigures((results as KvSide[]).slice(0, threads));
}

interface Order {
  readonly node: number;
  readonly url: URL;
  readonly exportName: string;
  readonly args?: JsonLike;
  readonly process?: string;
}

async function runOn(
  options: MachineOptions,
  orders: readonly Order[],
): Promise<{ readonly results: readonly unknown[]; readonly report: Report }> {
  await using machine = await Machine.create(options);
  for (const [at, { url, exportName, args = null, ...place }] of orders.entries())
    await machine.load({ ...place, name: `${exportName}${at}`, run: { url, exportName }, args });
  await machine.run();
  return { results: await machine.results(), report: await machine.report() };
}
