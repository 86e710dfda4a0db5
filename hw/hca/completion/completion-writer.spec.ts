import { describe, expect, it, vi } from 'vitest';
import { cqc, QueueStatus } from '../../../abi/cqc.ts';
import { CqeOpcode, cqeBytes } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { tightest } from '../testing/data-path-bench.ts';
import {
  Cq,
  connectedPair,
  freshCqBuffer,
  pagesOf,
  Qp,
  type SendRequest,
} from '../testing/data-path-verbs.ts';
import { scene } from '../testing/scenario.ts';

const nop: SendRequest = { opcode: WqeOpcode.NOP };

describe('CQEs', () => {
  it('sheet 6.6: are 32 bytes, each field in its place, owner bit by pass', async () => {
    const given = await scene();
    const { bench } = given;
    const cq = new Cq(bench.a, 1);
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.connect(0, 0, 0);
    await bench.run(2);
    const bytes = (entry: number): string =>
      Buffer.from(
        bench.a.memory.bytes.subarray(cq.bufferAddress + entry * cqeBytes).subarray(0, 32),
      ).toString('hex');
    for (let index = 0; index < 3; index++) {
      qp.send(nop);
      await bench.run(5);
      cq.drain();
    }
    const qpn = qp.qpn.toString(16).padStart(8, '0');
    // QPN, then zeros up to the WQE counter at 0x18; byte 0x1f: owner, send side, opcode 0.
    expect(bytes(1)).toBe(`${qpn}${'00'.repeat(20)}0001${'00'.repeat(5)}40`);
    expect(bytes(0)).toBe(`${qpn}${'00'.repeat(20)}0002${'00'.repeat(5)}c0`);
  });

  it('sheet 6.6: carry 48 bits of the core clock in a CQ with timestamps, over service level and source LID', async () => {
    const { bench } = await scene();
    const cq = new Cq(bench.a, 1, { timestamps: 1 });
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.connect(0, 0, 0);
    await bench.run(2);
    const { domain, dmaWrite } = bench.a.dataPath.parts;
    // Bits 47 to 16 lie in the dword at 0c, 15 to 0 at 1d; bit 49 is in neither.
    domain.epochCycles = 0x2_8765_4321_0000 - 0x2_0000;
    const issuedAt: number[] = [];
    const request = vi.spyOn(dmaWrite, 'request').mockImplementation((...write) => {
      if (write[2] === cqeBytes) issuedAt.push(domain.cycle);
      request.mockRestore();
      dmaWrite.request(...write);
    });
    const first = domain.cycle;
    qp.send(nop);
    await bench.run(5);
    const hex = Buffer.from(bench.a.memory.bytes.subarray(cq.bufferAddress).subarray(0, 32)).toString('hex');
    expect(issuedAt).toHaveLength(1);
    expect(issuedAt[0]).toBeGreaterThan(first);
    const stamp = (0x8765_4321_0000n - 0x2_0000n + BigInt(issuedAt[0]!)).toString(16).padStart(12, '0');
    const qpn = qp.qpn.toString(16).padStart(8, '0');
    expect(hex).toBe(
      `${qpn}${'00'.repeat(8)}${stamp.slice(0, 8)}${'00'.repeat(8)}00000000${'00'}${stamp.slice(8)}40`,
    );
  });

  it('sheet 6.6: of errors have syndrome, vendor syndrome and opcode 0x1e', async () => {
    const given = await scene();
    const { bench } = given;
    const cq = new Cq(bench.a, 1);
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.connect(0, 0, 0);
    qp.send({ opcode: WqeOpcode.LOCAL_INVAL });
    await bench.run(10);
    const hex = Buffer.from(bench.a.memory.bytes.subarray(cq.bufferAddress).subarray(0, 32)).toString('hex');
    expect(hex).toBe(`${qp.qpn.toString(16).padStart(8, '0')}${'00'.repeat(20)}000070020000005e`);
  });
});

describe('a CQ that is full', () => {
  for (const hca of [{}, tightest])
    it(`IBTA 10.10.2.3, sheet 6.6: overruns with an event, fails its QPs and no others${hca === tightest ? ', at the smallest sizes' : ''}`, async () => {
      const given = await scene({ hca });
      const { bench, checkBystanders } = given;
      const cq = new Cq(bench.a, 2);
      const first = connectedPair(bench.a, bench.b, { a: { sendCq: cq } });
      const second = new Qp(bench.a, { sendCq: cq });
      second.connect(0, 0, 0);
      await bench.run(3);
      // Five signalled requests into four entries that software does not consume.
      for (let index = 0; index < 5; index++) first.a.post(nop);
      first.a.ring();
      await bench.run(30);
      expect(bench.a.events.lines).toEqual([`cq 1 0x${cq.cqn.toString(16)}`]);
      expect([first.a.state, second.state]).toEqual([QpState.ERR, QpState.ERR]);
      expect(cq.drain()).toHaveLength(4);
      // The fifth request had no CQE: it does not count as completed.
      expect(bench.a.dataPath.parts.operations.rows[nop.opcode]!.count).toBe(4);
      bench.a.act(() => bench.a.dataPath.control.cqSync(cq.slot));
      await bench.run(1);
      const { cqs } = bench.a.dataPath.parts;
      expect(cqc.fields.status.get(cqs.view, cqs.offsetOf(cq.slot))).toBe(QueueStatus.OVERFLOW);
      await checkBystanders();
      expect(bench.a.dataPath.control.cqIsBusy(cq.slot)).toBe(false);
      await bench.until(
        () => bench.a.dataPath.parts.records.freeCount === bench.a.dataPath.parts.records.capacity,
        10,
      );
    });

  it('sheet 6.8: goes on when the doorbell record says that software has consumed', async () => {
    const given = await scene();
    const { bench } = given;
    const cq = new Cq(bench.a, 2);
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.connect(0, 0, 0);
    await bench.run(2);
    for (let round = 0; round < 6; round++) {
      for (let index = 0; index < 4; index++) qp.post(nop);
      qp.ring();
      await bench.run(10);
      expect(cq.drain()).toHaveLength(4);
    }
    expect(bench.a.events.lines).toEqual([]);
  });

  it('sheet 5.2: overwrites when the CQ ignores overruns', async () => {
    const given = await scene();
    const { bench } = given;
    const cq = new Cq(bench.a, 1, { ignoreOverrun: 1 });
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.connect(0, 0, 0);
    for (let index = 0; index < 6; index++) qp.post(nop);
    qp.ring();
    await bench.run(20);
    expect(bench.a.events.lines).toEqual([]);
    expect(bench.a.dataPath.parts.cqs.rows[cq.slot]!.producer).toBe(6);
  });

  it('sheet 5.2: whose page is not present fails with syndrome 2 and status "write failure"', async () => {
    const given = await scene();
    const { bench } = given;
    const cq = new Cq(bench.a, 2, { mttAddress: bench.a.writeMtt([-1]) });
    const qp = new Qp(bench.a, { sendCq: cq });
    qp.connect(0, 0, 0);
    qp.send(nop);
    await bench.run(10);
    expect(bench.a.events.lines).toEqual([`cq 2 0x${cq.cqn.toString(16)}`]);
    expect(bench.a.dataPath.parts.cqs.rows[cq.slot]!.status).toBe(QueueStatus.WRITE_FAILURE);
  });
});

describe('resizing', () => {
  for (const hca of [{}, tightest])
    it(`sheet 3.16: marks in the old buffer that the rest is in the new one, under load${hca === tightest ? ', at the smallest sizes' : ''}`, async () => {
      const given = await scene({ hca });
      const { bench } = given;
      const cq = new Cq(bench.a, 3);
      const qp = new Qp(bench.a, { sendCq: cq });
      qp.connect(0, 0, 0);
      await bench.run(3);
      const seen: number[] = [];
      let isResized = false;
      const newBuffer = freshCqBuffer(bench.a, 5);
      const newMtt = bench.a.writeMtt(pagesOf(newBuffer, 1024));
      const take = (): void => {
        for (const { opcode, wqeCounter } of cq.drain()) {
          if (opcode !== CqeOpcode.RESIZE) seen.push(wqeCounter);
          else {
            isResized = true;
            cq.bufferAddress = newBuffer;
            cq.logEntries = 5;
          }
        }
      };
      let posted = 0;
      for (let round = 0; round < 40; round++) {
        if (round === 15)
          bench.a.act(() => {
            const { cqs } = bench.a.dataPath.parts;
            const at = cqs.offsetOf(cq.slot);
            // Owner bits that the resize command writes into the new buffer: the passes around the number after the mark.
            const first = cqs.rows[cq.slot]!.producer + 1;
            for (let entry = 0; entry < 32; entry++) {
              const pass = (first >>> 5) & 1;
              const owner = entry < (first & 31) ? pass : 1 - pass;
              bench.a.memory.bytes[newBuffer + entry * cqeBytes + 31] = owner << 7;
            }
            cqc.fields.logEntries.set(cqs.view, at, 5);
            cqc.fields.mttAddress.set(cqs.view, at, newMtt);
            bench.a.dataPath.control.cqResized(cq.slot);
          });
        if (posted - seen.length < 5) {
          qp.send(nop);
          posted++;
        }
        await bench.run(0.2);
        take();
      }
      await bench.run(20);
      take();
      take();
      expect(isResized).toBe(true);
      expect(seen).toEqual(Array.from({ length: posted }, (_, index) => index));
      expect(bench.a.events.lines).toEqual([]);
      expect(bench.a.dataPath.control.cqIsBusy(cq.slot)).toBe(false);
    });
});
