/** Contracts of every block of PCIe: a new block is checked by adding it to the list. */
import { describe, expect, it } from 'vitest';
import { InvariantError } from '../../base/assert.ts';
import { Random } from '../../sim/random.ts';
import { checkWires } from '../../sim/wires-bench.ts';
import { Completer } from './function/completer.ts';
import { ConfigSpace } from './function/config-space.ts';
import { ErrorLatch } from './function/error-latch.ts';
import { BAR0, configRequest, enabledBench, FUNCTION_ID, functionBench } from './function/function-bench.ts';
import { functionWires } from './function/function-blocks.ts';
import { FunctionIngress } from './function/function-ingress.ts';
import { Intx } from './function/intx.ts';
import { MessageOutbox } from './function/message-outbox.ts';
import { Msix } from './function/msix.ts';
import { PcieFunction } from './function/pcie-function.ts';
import {
  answer,
  type LinkBenchOptions,
  linkBench,
  linkPair,
  memoryRead,
  memoryWrite,
  onReceive,
  onSendSpace,
  runPair,
} from './link/link-bench.ts';
import { STALL_REASONS } from './link/link-stall.ts';
import { PcieLinkPort } from './link/pcie-link-port.ts';
import { RootComplex } from './root-complex/root-complex.ts';
import { rootComplexBench } from './root-complex/root-complex-bench.ts';
import { rootComplexWires } from './root-complex/root-complex-blocks.ts';
import { RootComplexCpu } from './root-complex/root-complex-cpu.ts';
import { RootComplexEgress } from './root-complex/root-complex-egress.ts';
import { RootComplexReads } from './root-complex/root-complex-reads.ts';
import { RootComplexWrites } from './root-complex/root-complex-writes.ts';
import {
  COMPLETION_FLOW,
  CONFIG_READ,
  FLAG_POISONED,
  FLOW_COUNT,
  MEMORY_READ,
  MESSAGE_ERR_COR,
  NON_POSTED,
  POSTED,
  SIDEBAND_RESET,
} from './tlp/tlp.ts';

describe('the wires', () => {
  it('of the function lead to existing blocks, and each port is connected once', () => {
    const outside = ['pcieFunction', 'target', 'messageSender', 'reads'];
    checkWires(functionWires, () => functionBench().fn.blocks, outside);
  });

  it('of the root complex lead to existing blocks, and each port is connected once', () => {
    const make = () => {
      const { rootComplex } = rootComplexBench();
      return { ...rootComplex.blocks, port: rootComplex.port };
    };
    checkWires(rootComplexWires, make, ['rootComplex', 'interrupts']);
  });
});

/** The blocks that a reset of the function clears. A reset reaches neither the link nor the host. */
const ofTheFunction = [PcieFunction, ConfigSpace, Completer, MessageOutbox, ErrorLatch, Msix, Intx];
const others = [
  PcieLinkPort,
  FunctionIngress,
  RootComplex,
  RootComplexWrites,
  RootComplexReads,
  RootComplexCpu,
  RootComplexEgress,
];

describe('every block of PCIe', () => {
  it('shows its state, and can be reset if the function has it', () => {
    for (const { name, prototype } of ofTheFunction)
      expect(['inspect' in prototype, 'reset' in prototype], name).toEqual([true, true]);
    for (const { name, prototype } of others)
      expect(['inspect' in prototype, 'reset' in prototype], name).toEqual([true, false]);
  });
});

const TABLE = BAR0 + 0x7c000;
const NARROW: LinkBenchOptions = {
  endpoint: { completionFifoTlps: 1, transmitBufferTlps: 1, postedFifoTlps: 1 },
  rootPort: { postedHeaders: 1 },
};

/** A function under maximum load from host and device, with little room towards the host, for a random time. */
function busyFunction(seed: number): ReturnType<typeof functionBench> {
  const random = new Random(seed);
  const bench = enabledBench({ mmioReadCycles: 3 + random.below(300) }, NARROW);
  const { host, fn, software } = bench;
  software.setConfig(0x9e, 2, 0x8000);
  software.setConfig(0x68, 2, 0x281f);
  const zeros = new Uint8Array(8);
  const dword = (value: number) => Uint8Array.of(value, value >> 8, value >> 16, value >>> 24);
  const doings: readonly (() => unknown)[] = [
    () =>
      memoryRead(host, {
        address: BAR0 + 4 * random.below(64),
        trafficClass: 12,
        lengthBytes: 4,
        tag: 100 + random.below(100),
        requesterId: 8,
      }),
    () =>
      memoryWrite(host, {
        address: BAR0 + 8 * random.below(64),
        trafficClass: 12,
        source: zeros,
        lengthBytes: 8,
      }),
    () =>
      memoryWrite(host, {
        address: TABLE + 4 * random.below(64),
        trafficClass: 12,
        source: dword(random.below(2 ** 31)),
        lengthBytes: 4,
      }),
    () =>
      memoryWrite(host, {
        address: TABLE + 16 * random.below(8) + 12,
        trafficClass: 12,
        source: dword(0),
        lengthBytes: 4,
      }),
    // Errors: outside the BARs, poisoned, for another function.
    () => memoryWrite(host, { address: 0x1000, trafficClass: 12, source: zeros, lengthBytes: 4 }),
    () =>
      memoryWrite(host, {
        address: BAR0,
        trafficClass: 12,
        source: zeros,
        lengthBytes: 4,
        flags: FLAG_POISONED,
      }),
    () => host.sendConfigRead({ ...configRequest(100 + random.below(100)), targetId: FUNCTION_ID + 1 }),
    () => host.sendConfigWrite({ ...configRequest(200), register: 0x3c, value: random.below(256) }),
    () => void fn.requestInterrupt(random.below(8), bench.cycleNow()),
    () => fn.setIntx(random.chance(0.5), bench.cycleNow()),
    () => fn.reportCompletionTimeout(),
    () => Object.assign(bench.sender, { hasRoom: random.chance(0.3) }),
  ];
  for (let step = 20 + random.below(60); step > 0; step--) {
    if (host.canSend(POSTED) && host.canSend(NON_POSTED)) doings[random.below(doings.length)]!();
    if (random.chance(0.4)) bench.run(1 + random.below(40_000));
  }
  return bench;
}

describe('the function and its parts', () => {
  it('PCIe 6.6.1: have no state left when the link is reset, from any state', () => {
    const fresh = functionBench().fn.inspect();
    const partsSeen = new Set<string>();
    for (let seed = 1; seed <= 60; seed++) {
      const bench = busyFunction(seed);
      for (const [name, state] of Object.entries(bench.fn.inspect()))
        if (JSON.stringify(state) !== JSON.stringify(fresh[name])) partsSeen.add(name);
      // At one edge, except received requests: they hold credits of the link.
      bench.fn.reset('fundamental', bench.cycleNow());
      expect({ ...bench.fn.inspect(), requests: 0 }, `seed ${seed}`).toEqual(fresh);
      bench.host.sendSideband(SIDEBAND_RESET, 1);
      bench.settle();
      bench.host.sendSideband(SIDEBAND_RESET, 0);
      bench.settle();
      expect(bench.fn.inspect(), `seed ${seed}`).toEqual(fresh);
      expect([bench.devicePort.receiver.heldCount, bench.devicePort.transmitter.waitingCount]).toEqual([
        0, 0,
      ]);
    }
    // Each part had some state to forget; an absent function is not reset this way.
    const parts = Object.keys(fresh).filter((name) => !['isAbsent', 'isHeldInReset'].includes(name));
    expect(parts.filter((name) => !partsSeen.has(name))).toEqual([]);
  });

  it('account for each of their cycles once, at whatever instant they are asked', () => {
    for (let seed = 100; seed < 120; seed++) {
      const { fn, domain, deviceLp } = busyFunction(seed);
      const elapsed = domain.clock.cyclesElapsed(deviceLp.nowPs);
      for (const account of [fn.account, fn.completer.account]) {
        const { name, busyCycles, idleCycles, stalledCycles, overlapCount } = account.closedAt(elapsed);
        const stalled = stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
        expect([name, busyCycles + idleCycles + stalled, overlapCount]).toEqual([name, elapsed, 0]);
      }
    }
  });

  it('stall for each of the reasons that they declare, and lose nothing', () => {
    const { host, fn, answers, settle } = enabledBench({ mmioReadCycles: 3 }, NARROW);
    const tags = Array.from({ length: 12 }, (_, index) => 100 + index);
    for (const tag of tags)
      memoryRead(host, { address: BAR0 + 4 * tag, trafficClass: 12, lengthBytes: 64, tag, requesterId: 8 });
    settle();
    const accounts = [fn.account, fn.completer.account];
    expect(accounts.flatMap(({ stallReasons }) => stallReasons)).toEqual(['linkFifo']);
    expect(fn.completer.account.stalledCycles[0]).toBeGreaterThan(0);
    expect(tags.filter((tag) => answers.get(tag)?.bytes.length !== 64)).toEqual([]);
  });

  it('stall the link while the device core processes a write: as many requests wait as credits exist', () => {
    const bench = enabledBench({}, { endpoint: { postedHeaders: 4 }, rootPort: { postedFifoTlps: 2 } });
    bench.target.occupiedCycles = 1000;
    let sentCount = 0;
    let isHeldUp = false;
    const most: number[] = [];
    while (sentCount < 40) {
      if (bench.host.canSend(POSTED))
        memoryWrite(bench.host, {
          address: BAR0 + 4 * sentCount++,
          trafficClass: 12,
          source: new Uint8Array(4),
          lengthBytes: 4,
        });
      else isHeldUp = true;
      bench.run(100_000);
      most.push(bench.fn.inspect()['requests'] as number);
    }
    for (let settled = 0; settled < 10; settled++) bench.settle();
    expect([isHeldUp, Math.max(...most)]).toEqual([true, 4]);
    expect(bench.target.writes.map(({ offset }) => offset)).toEqual(
      Array.from({ length: 40 }, (_, index) => 4 * index),
    );
  });

  it('drop and count messages beyond their limits: errors are hints, the registers the record', () => {
    const { fn, devicePort } = enabledBench();
    const outbox = new MessageOutbox({ port: devicePort, messageTrafficClass: 14 });
    outbox.connect({
      intx: new Intx({ config: { interruptPin: 1 } }),
      egress: { messageAdded: () => undefined },
    });
    for (let error = 0; error < 20; error++) outbox.addError(MESSAGE_ERR_COR);
    expect([(outbox.inspect()['errors'] as number[]).length, outbox.droppedCount]).toEqual([8, 12]);
    const latch = new ErrorLatch(fn);
    for (let error = 0; error < 20; error++) latch.addAbort('receivedMasterAbort', 1);
    expect([latch.inspect(), latch.droppedCount]).toEqual([{ entries: 16 }, 4]);
  });
});

const narrowLinks: readonly LinkBenchOptions[] = [
  { endpoint: { transmitBufferTlps: 1 } },
  { rootPort: { postedHeaders: 1, nonPostedHeaders: 1, completionHeaders: 1 } },
  { rootPort: { postedData: 17, nonPostedData: 1, completionHeaders: 9, completionData: 17 } },
];
const FLOWS = [POSTED, NON_POSTED, COMPLETION_FLOW];
const FLOW_NAMES = ['posted', 'nonPosted', 'completion'];
const TLP_COUNT = 60;

/** A device that sends in every flow as fast as allowed, to a host that holds each TLP for some time; inspected now and then. */
function slowLink(
  options: LinkBenchOptions,
  look: (pair: ReturnType<typeof linkPair>, stopPs: number) => void,
) {
  const pair = linkPair(options);
  const { device, host, deviceLp, hostLp } = pair;
  const bytes = new Uint8Array(256);
  const domain = deviceLp.addClockDomain(400);
  const senders: readonly ((index: number) => void)[] = [
    (index) =>
      memoryWrite(device, {
        address: 0,
        trafficClass: 5,
        source: bytes,
        lengthBytes: index % 2 === 0 ? 256 : 4,
      }),
    (index) =>
      index % 2 === 0
        ? memoryRead(device, { address: 0, trafficClass: 4, lengthBytes: 64, tag: index })
        : device.sendConfigWrite({ ...configRequest(index), value: 0 }),
    (index) => answer(device, { tag: index, trafficClass: 12, data: bytes }),
  ];
  const sent = [0, 0, 0];
  const stage = domain.addStage((cycle) => {
    for (const flow of FLOWS)
      if (sent[flow]! < TLP_COUNT && device.canSend(flow)) senders[flow]!(sent[flow]!++);
    if (cycle < 20_000) domain.wake(stage, cycle + 1);
  });
  domain.wake(stage, 1);
  const held: number[] = [];
  const hostDomain = hostLp.addClockDomain(10);
  const drain = hostDomain.addStage((cycle) => {
    const offset = held.shift();
    if (offset !== undefined) host.consume(offset);
    if (cycle < 900) hostDomain.wake(drain, cycle + 1);
  });
  hostDomain.wake(drain, 1);
  let arrivedCount = 0;
  onReceive(host, (offset) => {
    arrivedCount++;
    held.push(offset);
  });
  for (let stopPs = 33_331; stopPs < 60_000_000; stopPs += 33_331) {
    runPair(deviceLp, hostLp, 125_000, stopPs);
    look(pair, stopPs);
  }
  runPair(deviceLp, hostLp, 125_000, 100_000_000);
  expect(arrivedCount).toBe(3 * TLP_COUNT);
  expect([host.receiver.heldCount, host.receiver.overflowCount]).toEqual([0, 0]);
  for (const name of FLOW_NAMES)
    expect(device.inspect()[name]).toMatchObject({ waiting: 0, waitsFor: 'nothing' });
  return pair;
}

describe('a stalled link', () => {
  it('counts every picosecond for which a TLP waits under one reason, each that it declares, and loses nothing', () => {
    const counted = new Set<string>();
    for (const options of narrowLinks) {
      let before = { stopPs: 0, tlps: [0, 0, 0], stallPs: [0, 0, 0], waits: [false, false, false] };
      let checkedCount = 0;
      slowLink(options, ({ device }, stopPs) => {
        device.closeAccounts(stopPs);
        const { stallPs, flows } = device.transmitter;
        const sums = FLOWS.map((flow) =>
          STALL_REASONS.reduce((sum, _, reason) => sum + stallPs[flow * STALL_REASONS.length + reason]!, 0),
        );
        const now = {
          stopPs,
          tlps: flows.map(({ sent }) => sent.tlps),
          stallPs: sums,
          waits: flows.map(({ fifo }) => fifo.count > 0),
        };
        for (const flow of FLOWS) {
          const bookedPs = now.stallPs[flow]! - before.stallPs[flow]!;
          expect(bookedPs).toBeLessThanOrEqual(stopPs - before.stopPs);
          if (!before.waits[flow] || now.tlps[flow] !== before.tlps[flow]) continue;
          expect(bookedPs).toBe(stopPs - before.stopPs);
          checkedCount++;
        }
        for (const [at, ps] of stallPs.entries())
          if (ps > 0)
            counted.add(
              `${FLOW_NAMES[Math.floor(at / STALL_REASONS.length)]}: ${STALL_REASONS[at % STALL_REASONS.length]}`,
            );
        before = now;
      });
      expect(checkedCount).toBeGreaterThan(10);
    }
    const declared = FLOW_NAMES.flatMap((flow) => STALL_REASONS.map((reason) => `${flow}: ${reason}`));
    // PCIe 2.4.1: a posted request passes all others.
    expect(declared.filter((reason) => !counted.has(reason))).toEqual(['posted: ordering']);
  });

  it.each([
    ['posted', POSTED, 'postedFifoTlps'],
    ['non-posted', NON_POSTED, 'nonPostedFifoTlps'],
    ['completion', COMPLETION_FLOW, 'completionFifoTlps'],
  ] as const)('stalls its senders: a %s fifo accepts as many TLPs as it declares', (_, flow, capacity) => {
    const bench = linkBench({ endpoint: { transmitBufferTlps: 1, [capacity]: 3 } });
    const { device } = bench;
    const send = (): void => {
      if (flow === POSTED)
        memoryWrite(device, { address: 0, trafficClass: 5, source: new Uint8Array(4), lengthBytes: 4 });
      else if (flow === NON_POSTED) memoryRead(device, { address: 0, trafficClass: 4, lengthBytes: 4 });
      else answer(device, { tag: 0, trafficClass: 12 });
    };
    let heardCount = 0;
    onSendSpace(device, flow, () => heardCount++);
    // One is on the lanes at once.
    for (let tlp = 0; tlp < 4; tlp++) {
      expect(device.canSend(flow)).toBe(true);
      send();
    }
    expect(device.canSend(flow)).toBe(false);
    expect(send).toThrow(InvariantError);
    expect(FLOWS.filter((other) => device.canSend(other)).length).toBe(FLOW_COUNT - 1);
    bench.run(1_000_000);
    expect([heardCount, device.canSend(flow), bench.atHost.length]).toEqual([1, true, 4]);
  });
});

describe('the root complex and its parts', () => {
  it('hold nothing after all their requests were answered, of any kind', () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = new Random(seed);
      const bench = rootComplexBench({
        rootComplex: { outstandingReadCount: 1 + random.below(3) },
        rootPort: { completionFifoTlps: 1, transmitBufferTlps: 1 + random.below(2) },
      });
      const { rootComplex, device } = bench;
      const fresh = rootComplex.inspect();
      let [asked, done, readCount] = [0, 0, 0];
      const onDone = (): void => void done++;
      const loads = [0, 0];
      const load = (core: number): void => {
        if (loads[core]!++ > 0) return;
        asked++;
        if (random.chance(0.5)) rootComplex.cpuLoad(core, 0x8_0000_0000, 4, onDone);
        else rootComplex.configRead(core, random.chance(0.5) ? 0x100 : 0x300, 0, onDone);
      };
      const doings: readonly (() => void)[] = [
        () =>
          memoryWrite(device, {
            address: random.below(1 << 20),
            trafficClass: 5,
            source: new Uint8Array(64),
            lengthBytes: 64,
          }),
        () =>
          memoryRead(device, {
            address: 4096 * random.below(200),
            trafficClass: 4,
            lengthBytes: 1 + random.below(512),
            tag: readCount++,
            requesterId: 0x100,
          }),
        () => load(random.below(2)),
        () => {
          const core = random.below(2);
          if (rootComplex.canStore(core))
            rootComplex.cpuStore(core, 0x8_0000_0000, new Uint8Array(8), 0, 8, 12);
        },
      ];
      let endPs = 0;
      for (let step = 0; step < 40; step++) {
        if (device.canSend(POSTED) && device.canSend(NON_POSTED)) doings[random.below(doings.length)]!();
        endPs += 1 + random.below(60_000);
        bench.run(endPs);
      }
      expect(rootComplex.inspect(), `seed ${seed}`).not.toEqual(fresh);
      for (const { kind, tag } of bench.atDevice)
        if ((kind === MEMORY_READ || kind === CONFIG_READ) && random.chance(0.7))
          answer(device, { tag, trafficClass: 12, data: new Uint8Array(4) });
      bench.run(endPs + 2 * bench.config.completionTimeoutPs);
      const { reads, writes, cpu } = rootComplex.inspect();
      const sorted = (state: unknown) => {
        const { freeTags, nextCore: _, ...rest } = state as { freeTags: number[]; nextCore: number };
        return { ...rest, freeTags: [...freeTags].sort() };
      };
      expect({ reads, writes, cpu: sorted(cpu) }, `seed ${seed}`).toEqual({
        reads: fresh['reads'],
        writes: fresh['writes'],
        cpu: sorted(fresh['cpu']),
      });
      expect(done).toBe(asked);
      expect([bench.host.receiver.heldCount, bench.host.transmitter.waitingCount]).toEqual([0, 0]);
    }
  });

  it('stall a core whose stores the link does not accept, and notify it when room is free', () => {
    const bench = rootComplexBench({ endpoint: { postedHeaders: 1 }, rootPort: { postedFifoTlps: 1 } });
    const { rootComplex, config, device } = bench;
    const held: number[] = [];
    onReceive(device, (offset) => held.push(offset));
    let [storedCount, heardCount] = [0, 0];
    rootComplex.connectCore(0, { storeSpace: () => heardCount++ });
    const store = (): void =>
      rootComplex.cpuStore(0, 0x8_0000_0000 + 8 * storedCount, new Uint8Array(8), 0, 8, 12);
    while (rootComplex.canStore(0)) {
      store();
      storedCount++;
    }
    expect(storedCount).toBe(config.cpuEgressTlps);
    // The last slot is reserved for the single load that a core may wait for.
    rootComplex.cpuLoad(0, 0x8_0000_0000, 4, () => undefined);
    expect(store).toThrow(RangeError);
    for (let endPs = 1_000_000; held.length < storedCount + 1; endPs += 1_000_000) {
      bench.run(endPs);
      for (const offset of held.slice(-1)) device.consume(offset);
      if (endPs > 100_000_000) break;
    }
    expect([held.length, rootComplex.canStore(0)]).toEqual([storedCount + 1, true]);
    expect(heardCount).toBe(1);
  });
});
