import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { Clock } from '../../sim/index.ts';
import { OperationLedger, type OperationTap, operationNames, operationStages } from './operations.ts';
import { SendRecords } from './send-records.ts';
import { scene } from './testing/scenario.ts';

const QPN = 0x40;

function bench(tap?: OperationTap) {
  const ledger = new OperationLedger(new Clock(1000), Int32Array.of(QPN), tap);
  const request = new SendRecords(4).allocate();
  request.qp = 0;
  request.opcode = WqeOpcode.RDMA_WRITE;
  request.messageBytes = 64;
  request.syndrome = 0;
  request.wqeCounter = 7;
  request.fetchBegunCycle = 110;
  request.fetchedCycle = 150;
  request.takenUpCycle = 155;
  request.gatheredCycle = 190;
  request.transmittedCycle = 220;
  request.acknowledgedCycle = 900;
  const row = ledger.rows[WqeOpcode.RDMA_WRITE]!;
  const stages = (): number[] => operationStages.map((stage) => row.stagesPs[stage]);
  return { ledger, row, request, stages };
}

describe('OperationLedger', () => {
  it('lays the stages of a request end to end, from its posting to its CQE', () => {
    const issued: number[][] = [];
    const { ledger, row, request, stages } = bench({
      postedPs: (qpn, counter) => (qpn === QPN && counter === 7 ? 100_000 : -1),
      cqeIssued: (...values) => issued.push(values),
    });
    ledger.completed(request, 930, false);
    // doorbell 100→110, WQE fetch →150, scheduling →155, payload read →190, transmit →220, remote →900, completion →930.
    expect(stages()).toEqual([10, 40, 5, 35, 30, 680, 30].map((cycles) => cycles * 1000));
    expect(row.lifePs).toBe(830_000);
    expect([row.count, row.payloadBytes, ledger.disorderCount]).toEqual([1, 64, 0]);
    expect(issued).toEqual([[QPN, 7, 930_000]]);
  });

  it('begins with the fetch when nobody knows the posting time', () => {
    const { ledger, row, request, stages } = bench();
    ledger.completed(request, 930, true);
    expect(stages()[0]).toBe(0);
    expect([row.lifePs, row.silentCount]).toEqual([820_000, 1]);
  });

  it('gives a WQE that was on chip before it was posted no time of a fetch, and still leaves no gap', () => {
    const { ledger, row, request, stages } = bench({ postedPs: () => 152_000, cqeIssued: () => undefined });
    ledger.completed(request, 930, false);
    expect(stages()).toEqual([0, 0, 3, 35, 30, 680, 30].map((cycles) => cycles * 1000));
    expect(row.lifePs).toBe(778_000);
  });

  it('counts failures apart, without stages', () => {
    const { ledger, row, request, stages } = bench();
    request.syndrome = 5;
    ledger.completed(request, 930, false);
    expect(stages().every((ps) => ps === 0)).toBe(true);
    expect([row.count, row.failedCount]).toEqual([0, 1]);
  });

  it('tiles the lives of all operations in a running machine', async () => {
    const { bench: machine, a, b, aCq, local, remote, target } = await scene();
    b.receive([remote.part(0, 100)]);
    b.receive([remote.part(0, 100)]);
    b.receive([remote.part(0, 100)]);
    const part = { segments: [local.part(0, 8)], remote: target };
    for (const opcode of Object.keys(operationNames).map(Number)) {
      const isAtomic = opcode === WqeOpcode.ATOMIC_CS || opcode === WqeOpcode.ATOMIC_FA;
      a.send({
        opcode,
        ...(opcode === WqeOpcode.NOP ? {} : part),
        ...(isAtomic ? { swapOrAdd: 1n, compare: 0n } : {}),
      });
    }
    await machine.until(() => aCq.takenCount() === 8, 100);
    await machine.run(2);
    const { operations } = machine.a.dataPath;
    for (const opcode of Object.keys(operationNames).map(Number)) {
      const { count, lifePs, stagesPs } = operations.rows[opcode]!;
      expect([opcode, count]).toEqual([opcode, 1]);
      expect(operationStages.reduce((sum, stage) => sum + stagesPs[stage], 0)).toBe(lifePs);
      expect(lifePs).toBeGreaterThan(0);
    }
    expect(operations.disorderCount).toBe(0);
  });
});
