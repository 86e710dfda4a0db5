import { describe, expect, it } from 'vitest';
import { bar0 } from '../../abi/index.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { type Scene, scene } from '../../hw/hca/testing/scenario.ts';
import { BAR0, CONFIG, SlotBench } from './testing/slot-bench.ts';
import { QueueWaits, RegisterSpin } from './wait-watch.ts';

const limitMs = 3000;
const goOffset = bar0.registers.hcr.offset + 0x18;

/** A guest that reads a register a thousand times a second, and the messages about it. */
function spin(bench: SlotBench, offset: number, seconds: number): string[] {
  const said: string[] = [];
  for (let read = 0; read < 1000 * seconds; read++) {
    bench.readRegister(offset);
    bench.wallMs += 1;
    said.push(...bench.emulation.waits());
  }
  return said;
}

function guest(): SlotBench {
  const bench = new SlotBench();
  bench.connect();
  bench.enable();
  bench.work();
  return bench;
}

describe('a guest that reads one register repeatedly', () => {
  it('is reported once, after three seconds, with the register, its offset and its value', () => {
    const said = spin(guest(), bar0.registers.owner.offset, 8);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(
      /^HCA 0: the guest has read owner \(BAR0 \+ 0x8069c\) 3\d\d\d times in 3\.\d s, and nothing else; it stays 0x1/,
    );
  });

  it('at the command register is reported with the awaited command', () => {
    expect(spin(guest(), goOffset, 4).join()).toMatch(/hcr \+ 0x18 \(BAR0 \+ 0x80698\).*GO is clear/);
    // Sheet 2.2: GO is bit 23, the opcode bits 11:0; QUERY_DEV_CAP is 3.
    const watch = new RegisterSpin();
    watch.sample(0, limitMs);
    for (let read = 0; read < 200; read++) {
      watch.read(BAR0, goOffset, Uint8Array.of(0, 0x80, 0, 3));
      watch.sample(0, limitMs);
    }
    expect(watch.sample(limitMs, limitMs)).toMatch(
      /it stays 0x800003: GO is set, QUERY_DEV_CAP has not ended$/,
    );
    expect(watch.sample(2 * limitMs, limitMs)).toBe(undefined);
  });

  it('is not reported if it does anything in between, reads seldom, or sees the register change', () => {
    const bench = guest();
    const said: string[] = [];
    const others = [
      () => bench.writeRegister(bar0.registers.hcr.offset, 0),
      () => bench.read(CONFIG, 0),
      () => bench.write(CONFIG, 0x3c, 0, 1),
    ];
    for (let read = 0; read < 15_000; read++) {
      bench.readRegister(goOffset);
      // Five seconds of each, once a second.
      if (read % 1000 === 999) others[Math.floor(read / 5000)]!();
      bench.wallMs += 1;
      said.push(...bench.emulation.waits());
    }
    for (let read = 0; read < 50; read++) {
      bench.readRegister(goOffset);
      bench.wallMs += 200;
      said.push(...bench.emulation.waits());
    }
    expect(said).toEqual([]);
  });

  it('without a register at that offset is reported as such', () => {
    expect(spin(guest(), 0xf0040, 4).join()).toMatch(/BAR0 \+ 0xf0040, where no register is/);
  });
});

describe('a request that the device does not complete', () => {
  const rowsOf = ({ bench }: Scene) => bench.a.dataPath.parts.qps.rows;
  const write = ({ local, target }: Scene) => ({
    opcode: WqeOpcode.RDMA_WRITE,
    segments: [local.part(0, 100)],
    remote: target,
  });

  /** Checks at once, and again after a second more than the limit. */
  function looks(waits: QueueWaits, given: Scene): string[] {
    return [0, limitMs - 1, limitMs, limitMs + 1000].flatMap((ms) =>
      waits.sample(rowsOf(given), ms, limitMs),
    );
  }

  it('is reported once, with its queue and the missing answer', async () => {
    const given = await scene({ ackTimeout: 0 });
    const { bench, a, b } = given;
    bench.b.port.drops = ({ qpn }) => qpn === b.qpn;
    a.post(write(given));
    a.post(write(given));
    a.ring();
    await bench.run(50);
    const said = looks(new QueueWaits(), given);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(`the WRITE at 0 of QP 0x${a.qpn.toString(16)}'s send queue`);
    expect(said[0]).toMatch(
      /, 1 behind it\) waits for its acknowledgement from QP 0x[0-9a-f]+ \(no ACK time-out, 7 of 7 retries left\), for 3\.0 s by now$/,
    );
  });

  it('waits for a receive of the peer, as an RNR NAK shows', async () => {
    const given = await scene({ b: { fields: { minRnrNak: 30 } } });
    const { bench, a } = given;
    a.send({ opcode: WqeOpcode.SEND, segments: [given.local.part(0, 100)] });
    await bench.run(50);
    expect(looks(new QueueWaits(), given).join()).toMatch(
      /the SEND at 0 .* waits for a receive at QP 0x[0-9a-f]+ of the peer \(RNR NAK, again and again\)/,
    );
  });

  it('is not reported if the next one has replaced it', async () => {
    const given = await scene({ ackTimeout: 0 });
    const { bench, a, b } = given;
    const waits = new QueueWaits();
    const said: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      bench.b.port.drops = ({ qpn }) => qpn === b.qpn;
      a.send(write(given));
      await bench.run(20);
      said.push(...waits.sample(rowsOf(given), turn * 2000, limitMs));
      bench.b.port.drops = () => false;
      a.send(write(given));
      await bench.run(50);
    }
    expect(said).toEqual([]);
  });
});
