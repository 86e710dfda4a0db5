import { describe, expect, test } from 'vitest';
import { defaultsOf } from '../../base/parameter.ts';
import { netDriverParameters } from '../parameters.ts';
import type { NetPlatform } from '../platform.ts';
import type { NetError } from '../socket/index.ts';
import { addresses, ms, TestNetwork, type TestOptions, us } from '../testing/machine.ts';
import { Watchdog } from './watchdog.ts';

const port = 6000;

/** A client on host 0 sends `lengthBytes`, a server on host 1 reads them; `meanwhile` may inject faults once it is up. */
async function transfer(
  lengthBytes: number,
  options: TestOptions = {},
  meanwhile: (net: TestNetwork) => void = () => {},
): Promise<TestNetwork> {
  const net = new TestNetwork(options);
  net.run(0, 'client', async ({ cpu, memory }, calls) => {
    await cpu.sleep(100 * us);
    const fd = await calls.socket(cpu);
    await calls.connect(cpu, fd, { address: addresses[1], port });
    const buffer = memory.map(lengthBytes);
    meanwhile(net);
    expect(await calls.send(cpu, fd, buffer, lengthBytes)).toBe(lengthBytes);
    expect(await calls.recv(cpu, fd, buffer, 1)).toBe(0);
  });
  net.run(1, 'server', async ({ cpu, memory }, calls) => {
    const listening = await calls.socket(cpu);
    await calls.bind(cpu, listening, { address: 0, port });
    await calls.listen(cpu, listening, 1);
    const fd = await calls.accept(cpu, listening);
    const buffer = memory.map(lengthBytes);
    expect(await calls.recv(cpu, fd, buffer, lengthBytes, { waitAll: true })).toBe(lengthBytes);
  });
  await net.toEnd();
  return net;
}

describe('the watchdog', () => {
  test('finds frames that no interrupt announced, and polls', async () => {
    const net = await transfer(50_000, {}, ({ nodes }) => {
      nodes[1]!.nic.lostInterrupts = 1;
    });
    expect(net.nodes[1]!.network.counts.recoveredInterrupts).toBeGreaterThanOrEqual(1);
    expect(net.nodes[1]!.log.join()).toContain('no interrupt came');
  });

  test('resets an adapter whose transmit ring has stopped, and nothing of the stream is lost', async () => {
    const net = await transfer(200_000, {}, ({ nodes }) => {
      nodes[0]!.nic.isHung = true;
    });
    expect(net.nodes[0]!.network.counts.adapterResets).toBe(1);
    expect(net.nodes[0]!.network.counts.retransmissions).toBeGreaterThan(0);
  });

  test('stops checking when nothing has happened for a while, and resumes when the device is used', () => {
    const timers: (() => void)[] = [];
    const platform = { startTimer: (_delayPs: number, due: () => void) => void timers.push(due) };
    const watched = {
      waitingMark: -1,
      unsentFrames: 0,
      sentMark: 0,
      interruptLost: () => {},
      transmitHung: () => {},
    };
    const config = { ...defaultsOf(netDriverParameters), watchdogIdleTicks: 3 };
    const watchdog = new Watchdog(platform as unknown as NetPlatform, config, watched);
    watchdog.start();
    let looks = 0;
    for (let due = timers.pop(); due !== undefined; due = timers.pop()) {
      due();
      looks++;
    }
    // The first check sees that the device was used.
    expect(looks).toBe(4);
    watchdog.used();
    expect(timers).toHaveLength(1);
  });
});

describe('probe', () => {
  test('fails with ENOMEM when memory is exhausted, releases what it held, and works when memory is available', async () => {
    const net = new TestNetwork();
    await net.for(ms);
    const { network, host, platform } = net.nodes[0]!;
    await net.kernel(0, (cpu) => network.remove(cpu));
    const free = host.frames.freeCount;
    const hoard: number[] = [];
    for (let at = platform.memory.allocateFrames(1); at >= 0; at = platform.memory.allocateFrames(1))
      hoard.push(at);
    platform.memory.freeFrames(hoard.pop()!, 1);
    let code = '';
    await net.kernel(0, async (cpu) => {
      await network.probe(cpu).catch((error: NetError) => {
        code = error.code;
      });
    });
    expect(code).toBe('ENOMEM');
    for (const at of hoard) platform.memory.freeFrames(at, 1);
    expect(host.frames.freeCount).toBe(free);
    await net.kernel(0, (cpu) => network.probe(cpu));
    await net.kernel(0, (cpu) => network.remove(cpu));
    expect(host.frames.freeCount).toBe(free);
  });
});

describe('an interrupt storm', () => {
  /** Milliseconds that 20 ms of a program's computing take while `harm` runs. */
  async function computingMs(harm: (net: TestNetwork) => void, options: TestOptions = {}): Promise<number> {
    const net = new TestNetwork(options);
    let tookPs = 0;
    net.run(0, 'computing', async ({ cpu }) => {
      harm(net);
      const fromPs = cpu.localPs;
      for (let slice = 0; slice < 200; slice++) {
        // 100 µs at 2.5 GHz.
        cpu.charge('application', 250_000);
        await cpu.settle();
      }
      tookPs = cpu.localPs - fromPs;
    });
    await net.toEnd();
    return tookPs / ms;
  }

  /** Repeats an action on host 0. */
  const every = (intervalPs: number, act: (net: TestNetwork) => void) => (net: TestNetwork) => {
    const { queue } = net.process;
    const handler = queue.addHandler(() => {
      act(net);
      queue.schedule(net.process.nowPs + intervalPs, handler);
    });
    queue.schedule(net.process.nowPs + intervalPs, handler);
  };

  test('of causes without work leaves programs their share', async () => {
    const storm = every(us / 2, ({ nodes }) => nodes[0]!.nic.cause(1 << 7));
    const took = await computingMs(storm, { driver: { interruptIntervalNs: 0 } });
    expect(took).toBeGreaterThan(22);
    expect(took).toBeLessThan(50);
  });

  test('of frames faster than they can be handled leaves programs their share, and polling continues', async () => {
    const frame = new Uint8Array(60);
    let network: TestNetwork | undefined;
    const storm = every(us / 4, (net) => {
      network = net;
      net.nodes[0]!.nic.frameArrived(frame);
    });
    const took = await computingMs(storm);
    expect(took).toBeGreaterThan(22);
    expect(took).toBeLessThan(50);
    const { counts } = network!.nodes[0]!.network;
    expect(counts.pollRests).toBeGreaterThan(0);
    // Half of the core, at about 1 µs a frame.
    expect(counts.foreignTypes).toBeGreaterThan(5_000);
    expect(network!.nodes[0]!.nic.framesDropped).toBeGreaterThan(5_000);
  });

  test('is moderated by the NIC when requested', async () => {
    const storm = every(us / 2, ({ nodes }) => nodes[0]!.nic.cause(1 << 7));
    const took = await computingMs(storm, { driver: { interruptIntervalNs: 100_000 } });
    expect(took).toBeLessThan(21);
  });
});
