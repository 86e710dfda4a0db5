/**
 * A stock Linux on PCs of this process. Their processors run at 500 MHz: perftest waits for its clock for half a second of the
 * guest's time, which this computer must compute.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultsOf } from '../../cli/testing/schemas.ts';
import { SimulatorError } from '../../base/assert.ts';
import {
  insideFiles,
  LinuxMachine,
  type LinuxMachineOptions,
  linuxFaultsOf,
  linuxReportOf,
  renderLinuxReport,
} from '../../guests/linux/index.ts';
import { cache } from './suite.ts';

const options = { kernel: 'debian', cache, pc: { coreMhz: 500 } } as const satisfies LinuxMachineOptions;

/** Why there is no such guest; undefined if there is one. */
const reason = await insideFiles(options, cache).then(
  () => undefined,
  (error: unknown) => {
    if (!(error instanceof SimulatorError)) throw error;
    return error.message;
  },
);

const bootTimeoutMs = 300_000;
const limits = { timeoutSeconds: 30 };

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('a stock Linux in this process', () => {
  let machine: LinuxMachine;
  beforeAll(async () => {
    expect(reason).toBeUndefined();
    machine = await LinuxMachine.start({ ...options, analysis: { lint: true } });
    await machine.load();
  }, bootTimeoutMs);
  afterAll(() => machine?.close());

  it('has a port that is active', async () => {
    const { output, exitStatus } = await machine.run(0, 'ibv_devinfo', limits);
    expect(exitStatus).toBe(0);
    expect(output).toMatch(/hca_id:\s+mlx4_0[\s\S]*state:\s+PORT_ACTIVE/);
  });

  // Option -c of ibv_rc_pingpong compares each buffer with what was sent.
  it.each([
    ['by polling', '-c'],
    ['by events', '-c -e'],
  ])('moves right data between two of its processes %s', async (_, how) => {
    const pingpong = `ibv_rc_pingpong -g 0 -n 50 -s 4096 ${how}`;
    const { output, exitStatus } = await machine.run(0, `pair '${pingpong}' '${pingpong} localhost'`, limits);
    expect([exitStatus, output]).toEqual([0, expect.stringMatching(/^50 iters in /m)]);
    expect(output).not.toContain('invalid data');
  });

  it('ends with as many interrupts as the device sent, ledgers that balance, and time that adds up', async () => {
    const interrupts = await machine.compareInterrupts();
    // The commands' vector, and that of completions: one event for each of the 100 of the second pair.
    expect(interrupts.map(({ isEqual, name }) => [isEqual, name.split('@')[0]])).toEqual([
      [true, 'mlx4-async'],
      [true, 'mlx4-1'],
    ]);
    expect(interrupts[1]!.deviceCount).toBeGreaterThanOrEqual(50);
    const report = linuxReportOf(machine, [], interrupts);
    expect(linuxFaultsOf(report)).toEqual([]);
    expect(report.devices.analyses.flatMap(({ findings }) => findings)).toEqual([]);
    const [{ time, elapsedPs, interrupts: taken, mmio } = expect.fail('no host')] = report.hosts;
    expect(Object.values(time).reduce((sum, ps) => sum + ps, 0)).toBe(elapsedPs);
    const counted = interrupts.reduce((sum, { guestCount }) => sum + guestCount, 0);
    expect([taken.messages, taken.pins]).toEqual([counted, 0]);
    const { accesses } = report.devices.nodes[0]!;
    const bars = [...Object.values(accesses.registers), ...Object.values(accesses.doorbells)];
    const stores = bars.reduce((sum, { writes }) => sum + writes, 0);
    // Those of the MSI-X table stay in the PC.
    expect(mmio.stores).toBeGreaterThan(stores);
    expect(mmio.stores - stores).toBeLessThan(1000);
    expect(faultsOf(JSON.parse(JSON.stringify(report)))).toEqual([]);
    const wide = renderLinuxReport(report).split('\n').slice(-20);
    expect(wide.join('\n')).toContain('Not modelled');
    expect(wide.filter((line) => line.length > 80)).toEqual([]);
  });
});

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('two stock Linuxes in this process', () => {
  let machine: LinuxMachine;
  beforeAll(async () => {
    // The cable damages a packet: the sender retransmits it, and the programs do not notice.
    const faults = [{ packet: 'corrupted', node: 1, nth: '20' }] as const;
    machine = await LinuxMachine.start({ ...options, hosts: 2, faults });
    await machine.load();
  }, bootTimeoutMs);
  afterAll(() => machine?.close());

  it.each([
    ['ib_write_lat -n 50 -s 64', /^ 64 +50 +\d/m],
    ['ib_send_bw -n 50 -s 4096', /^ 4096 +50 +\d/m],
  ])('run %s over the cable', async (test, row) => {
    const server = await machine.startServer(0, test, 30);
    expect(server.isListening).toBe(true);
    const client = await machine.run(1, `${test} host0`, limits);
    expect([client.exitStatus, client.output]).toEqual([0, expect.stringMatching(row)]);
    const { exitStatus, output } = await machine.finish(server);
    expect([exitStatus, output]).toEqual([0, expect.stringContaining('Waiting for client')]);
  });

  it('show the fault, and agree with the devices on interrupts', async () => {
    const report = linuxReportOf(machine, [], await machine.compareInterrupts());
    expect(linuxFaultsOf(report)).toEqual([]);
    expect(report.devices.faults!.map(({ fired }) => fired)).toEqual([1]);
    expect(report.devices.wire.map(({ packets }) => packets > 50)).toEqual([true, true]);
  });
});

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('a run of a stock Linux', () => {
  /** The random numbers that programs get, and the driver of the device. */
  async function seenWith(seed: number): Promise<{ readonly random: string; readonly all: string }> {
    let consoleText = '';
    const machine = await LinuxMachine.start({
      ...options,
      seed,
      onConsole: (host, text) => {
        consoleText += `${host} ${text}`;
      },
    });
    const random = await machine.run(0, 'cat /proc/sys/kernel/random/uuid', limits);
    const loaded = await machine.run(0, 'modprobe mlx4_core; dmesg | tail -5 >/dev/console', limits);
    machine.close();
    const report = linuxReportOf(machine, [random, loaded].map((each) => ({ host: 0, ...each })), []);
    expect(consoleText).toContain('mlx4_core');
    return { random: random.output, all: JSON.stringify(report) + consoleText };
  }

  it('is the same for the same seed, byte for byte, in report and console, and another for another', async () => {
    const first = await seenWith(3);
    expect(await seenWith(3)).toEqual(first);
    const other = await seenWith(4);
    expect(other.random).not.toBe(first.random);
    expect(other.all).not.toBe(first.all);
  }, bootTimeoutMs);
});
