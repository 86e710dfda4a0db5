import { describe, expect, it } from 'vitest';
import { mailboxBytes } from '../../abi/hcr.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { Driver, driverParameters } from '../../driver/index.ts';
import { defectOf } from './defect.ts';
import { renderServeReport } from './render-serve-report.ts';
import { buildServeReport } from './serve-report.ts';
import { DrivenSlot } from './testing/driven-slot.ts';
import { CONFIG, SlotBench } from './testing/slot-bench.ts';

const config = defaultsOf(driverParameters);

async function probed(bench: SlotBench, node = 0): Promise<{ slot: DrivenSlot; driver: Driver }> {
  const slot = new DrivenSlot(bench, node);
  const driver = new Driver(slot.platform, config);
  await driver.probe(slot.cpu);
  return { slot, driver };
}

const reportOf = ({ emulation }: SlotBench) =>
  buildServeReport({
    config: emulation.options.config,
    faults: [],
    cabling: emulation.options.cabling,
    timeScale: 1,
    elapsedPs: emulation.time.nowPs,
    followedPs: emulation.time.followedPs,
    slots: emulation.ledgers(),
    defects: emulation.defects,
    analyses: emulation.analyses(),
    run: { node: 'v24', wallMs: 0, workMs: 0, pollMs: 0, waitMs: 0, slices: 0, cutSlices: 0 },
  });

describe('a kernel driver on a slot', () => {
  it('brings the device up with interrupts, its port active by the loopback plug, and releases it', async () => {
    const bench = new SlotBench();
    const { slot, driver } = await probed(bench);
    const { hca } = bench.emulation.hcas[0]!;
    expect(hca.control.ports[0]!.isActive).toBe(true);
    expect(bench.emulation.guests[0]!.rootComplex.device).toBe(hca.shared);
    expect(hca.shared.earlyPlaces).toBeDefined();
    expect(bench.raised.length).toBeGreaterThan(0);
    await driver.remove(slot.cpu);
    bench.work();
    const report = reportOf(bench);
    expect(report.checks).toMatchObject({ balanced: true });
    const [node] = report.nodes;
    expect(node!.hca.commands['INIT_HCA']).toMatchObject({ count: 1 });
    expect(node!.hca.commands['INIT_HCA']!.takenPs).toBeGreaterThan(0);
    expect(node!.accesses.registers['owner']).toEqual({ reads: 1, writes: 1 });
    const { requested, sent, delivered, raised } = node!.interrupts[0]!;
    expect([requested, sent, delivered, raised]).toEqual(Array(4).fill(bench.raised.length));
    const text = renderServeReport(report);
    for (const words of ['INIT_HCA', 'owner', 'The ledgers balance', 'Not measured'])
      expect(text).toContain(words);
    expect(renderServeReport(JSON.parse(JSON.stringify(report)))).toBe(text);
  });

  it('sees the same device without shortcuts', async () => {
    const reports = await Promise.all(
      [true, false].map(async (shortcuts) => {
        const bench = new SlotBench({ shortcuts });
        const { slot, driver } = await probed(bench);
        expect(bench.emulation.hcas[0]!.hca.shared.earlyPlaces !== undefined).toBe(shortcuts);
        await driver.remove(slot.cpu);
        bench.work();
        return reportOf(bench);
      }),
    );
    expect(reports[1]).toEqual(reports[0]);
  });

  it('finds the ports of two cabled HCAs active once both are open, and down before', async () => {
    const bench = new SlotBench({ hcaCount: 2, cabling: 'cable' });
    const ports = bench.emulation.hcas.map(({ hca }) => hca.control.ports[0]!);
    const first = new DrivenSlot(bench, 0);
    const second = new DrivenSlot(bench, 1);
    const drivers = [first, second].map((slot) => new Driver(slot.platform, config));
    // Its probe waits for an active port, which depends on the second driver's probe; that begins meanwhile.
    const probes = [drivers[0]!.probe(first.cpu)];
    expect(ports.map(({ isActive }) => isActive)).toEqual([false, false]);
    probes.push(drivers[1]!.probe(second.cpu));
    await Promise.all(probes);
    expect(ports.map(({ isActive }) => isActive)).toEqual([true, true]);
    expect(ports.map(({ lid }) => lid)).toEqual([1, 2]);
    second.bench.slot(1).clientDisconnected();
    bench.work();
    expect(ports.map(({ isActive }) => isActive)).toEqual([false, false]);
  });

  it('finds its port down without a cable or a plug', async () => {
    const bench = new SlotBench({ cabling: 'open' });
    const slot = new DrivenSlot(bench);
    await new Driver(slot.platform, config).probe(slot.cpu).catch(() => {});
    slot.pass(100);
    expect(bench.emulation.hcas[0]!.hca.control.ports[0]!.isActive).toBe(false);
    expect(bench.emulation.defects).toEqual([]);
  });

  it('can be followed by the driver of the next guest, as if that were the first', async () => {
    const bench = new SlotBench();
    for (let guest = 0; guest < 3; guest++) {
      const { slot } = await probed(bench);
      bench.slot().clientDisconnected();
      const { writeCount } = slot.memory;
      bench.work();
      expect(slot.memory.writeCount).toBe(writeCount);
    }
    expect(reportOf(bench).nodes[0]!.sessions).toBe(3);
    expect(reportOf(bench).checks).toMatchObject({ balanced: true });
  });
});

describe('a guest that disconnects in the middle of a transfer', () => {
  /** A device that is reading the mailbox of a command, and a guest's memory. */
  async function transferring(bench: SlotBench) {
    const { slot } = await probed(bench);
    const go = 0x8069c - 4;
    for (let word = 0; word < 6; word++) bench.writeRegister(0x80680 + 4 * word, word === 1 ? 0x10_0000 : 0);
    // QUERY_DEV_CAP into a mailbox at 1 MiB.
    bench.writeRegister(0x8068c + 4, 0x10_0000);
    bench.writeRegister(go, 0x0080_0003);
    return slot;
  }

  it('is never written again, nor is the next guest by its transfers', async () => {
    // The answer is written about 5.2 µs after the command.
    const instantsNs = [0, 1000, ...Array.from({ length: 12 }, (_, at) => 4600 + 100 * at), 8000];
    for (const instantNs of instantsNs) {
      const bench = new SlotBench();
      const slot = await transferring(bench);
      const { time } = bench.emulation;
      time.runner.runTo(time.nowPs + instantNs * 1000);
      const before = slot.memory.writeCount;
      bench.slot().clientDisconnected();
      const next = bench.connect(0, 4 * 2 ** 20);
      bench.enable();
      slot.pass(50);
      expect(slot.memory.writeCount).toBe(before);
      expect([next.writeCount, next.refusedCount]).toEqual([0, 0]);
      expect(next.bytes.subarray(0x10_0000, 0x10_0000 + mailboxBytes).every((byte) => byte === 0)).toBe(true);
      expect(bench.emulation.defects).toEqual([]);
    }
  });

  it('leaves no error to the next guest: late answers to its reads set no status', async () => {
    // MAD_IFC reads its mailbox 7 to 8 µs after the command: its completions, all refused, arrive when the slot is off.
    for (let instantNs = 7000; instantNs <= 8400; instantNs += 100) {
      const bench = new SlotBench();
      await probed(bench);
      for (let word = 0; word < 6; word++)
        bench.writeRegister(0x80680 + 4 * word, word === 1 ? 0x10_0000 : word === 2 ? 1 : 0);
      bench.writeRegister(0x80698, 0x0080_0024);
      const { time } = bench.emulation;
      time.runner.runTo(time.nowPs + instantNs * 1000);
      bench.slot().clientDisconnected();
      bench.connect();
      // Status and command as after power-on: a capability list, no Received Master Abort.
      expect([instantNs, bench.read(CONFIG, 4)]).toEqual([instantNs, 0x0010_0000]);
    }
  });

  it('or is reset there, finds its device working afterwards', async () => {
    const bench = new SlotBench();
    const slot = await transferring(bench);
    bench.slot().reset();
    const writes = slot.memory.writeCount;
    slot.pass(20);
    expect(slot.memory.writeCount).toBe(writes);
    const driver = new Driver(slot.platform, config);
    await driver.probe(slot.cpu);
    expect(bench.emulation.hcas[0]!.hca.control.ports[0]!.isActive).toBe(true);
  });

  it('or removes its memory, is answered as by hardware: refused, and counted', async () => {
    const bench = new SlotBench();
    const slot = await transferring(bench);
    slot.memory.isMapped = false;
    slot.pass(20);
    expect(slot.memory.refusedCount).toBeGreaterThan(0);
    const { deviceFaults } = reportOf(bench).nodes[0]!;
    expect(Object.keys(deviceFaults).length).toBeGreaterThan(0);
    expect(bench.emulation.defects).toEqual([]);
  });
});

describe('a model that throws', () => {
  /** Breaks the device: its next register read throws. */
  const sabotage = ({ emulation }: SlotBench): void => {
    emulation.hcas[0]!.hca.control.blocks.commandSet.registers.read = () => {
      throw new TypeError('sabotaged');
    };
  };

  it('is reported with the access that caused it, answers all ones, and is rebuilt', async () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    sabotage(bench);
    expect(bench.readRegister(0x8069c)).toBe(0xffff_ffff);
    expect(bench.emulation.hasFailed).toBe(true);
    expect(bench.emulation.defects).toMatchObject([
      { node: 0, access: 'read of 4 bytes at 0x8069c of BAR0' },
    ]);
    expect(bench.emulation.defects[0]!.message).toContain('sabotaged');
    bench.writeRegister(0x8069c, 0);
    bench.slot().reset();
    bench.slot().setInterrupt(2, 0, 5);
    bench.slot().clientDisconnected();
    expect(bench.emulation.defects).toHaveLength(1);
    bench.emulation.rebuild();
    await probed(bench);
    expect(bench.emulation.hasFailed).toBe(false);
    const report = reportOf(bench);
    expect(report.defects).toHaveLength(1);
    expect(renderServeReport(report)).toContain('A DEFECT OF THE EMULATOR');
  });

  it('while time passes is detected as well', () => {
    const bench = new SlotBench();
    bench.connect();
    bench.enable();
    const { lp } = bench.emulation.hcas[0]!;
    lp.queue.schedule(
      lp.nowPs + 100,
      lp.queue.addHandler(() => {
        throw new TypeError('sabotaged');
      }),
    );
    bench.emulation.time.touched();
    expect(bench.emulation.work(1)).toBe(0);
    expect(bench.emulation.defects).toMatchObject([{ access: 'time passing' }]);
  });

  it('is reported with its cause and the place of the error, also in JSON', () => {
    const bench = new SlotBench({ hcaCount: 2 });
    bench.connect(1);
    bench.enable(1);
    const { lp } = bench.emulation.hcas[1]!;
    const breakAtTheRoot = (): never => {
      throw new TypeError('sabotaged at the root');
    };
    lp.queue.schedule(
      lp.nowPs + 100,
      lp.queue.addHandler(() => {
        try {
          breakAtTheRoot();
        } catch (cause) {
          throw new Error('what came of it', { cause });
        }
      }),
    );
    bench.emulation.time.touched();
    bench.emulation.work(1);
    const [defect] = (JSON.parse(JSON.stringify(reportOf(bench))) as ReturnType<typeof reportOf>).defects;
    expect(defect).toMatchObject({ node: 1, access: 'time passing' });
    expect(defect!.causes.map(({ message }) => message)).toEqual([
      'what came of it',
      'sabotaged at the root',
    ]);
    expect(defect!.causes[1]!.stack).toContain('breakAtTheRoot');
    expect(renderServeReport(reportOf(bench))).toContain('breakAtTheRoot');
  });

  it('is reported even if the thrown value is not an error, or its cause is circular', () => {
    const circular = new Error('again');
    circular.cause = circular;
    const circumstances = { node: 0, access: 'x', atPs: 1 };
    expect(defectOf(circular, circumstances).causes).toHaveLength(8);
    expect(defectOf(Symbol('odd'), circumstances)).toMatchObject({ message: 'Symbol(odd)', causes: [] });
    const unspeakable = Object.create(null) as object;
    expect(defectOf(unspeakable, circumstances).message).toContain('no text');
  });
});
