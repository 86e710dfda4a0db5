import { describe, expect, it } from 'vitest';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { Clock } from '../../sim/index.ts';
import { OperationLedger, type OperationTap, operationNames, operationStages } from './operations.ts';
import {
  MILESTONE_ACKNOWLEDGED,
  MILESTONE_FETCH_BEGUN,
  MILESTONE_FETCHED,
  MILESTONE_GATHERED,
  MILESTONE_TAKEN_UP,
  MILESTONE_TRANSMITTED,
  SendRecords,
} from './send-records.ts';
import { scene } from './testing/scenario.ts';

const QPN = 0x40;

function bench(tap?: OperationTap) {
  const records = new SendRecords(4);
  const ledger = new OperationLedger(records, new Clock(1000), Int32Array.of(QPN), tap);
  const record = records.allocate();
  records.rows[record]!.qp = 0;
  records.rows[record]!.opcode = WqeOpcode.RDMA_WRITE;
  records.rows[record]!.messageBytes = 64;
  records.rows[record]!.syndrome = 0;
  records.rows[record]!.wqeCounter = 7;
  const cycles = [110, 150, 155, 190, 220, 900];
  [
    MILESTONE_FETCH_BEGUN,
    MILESTONE_FETCHED,
    MILESTONE_TAKEN_UP,
    MILESTONE_GATHERED,
    MILESTONE_TRANSMITTED,
    MILESTONE_ACKNOWLEDGED,
  ].forEach((milestone, index) => {
    records.setMilestone(record, milestone, cycles[index]!);
  });
  const stages = (): number[] => [
    ...ledger.stagePs
      .subarray(WqeOpcode.RDMA_WRITE * operationStages.length)
      .subarray(0, operationStages.length),
  ];
  return { records, ledger, record, stages };
}

describe('OperationLedger', () => {
  it('lays the stages of a request end to end, from its posting to its CQE', () => {
    const issued: number[][] = [];
    const { ledger, record, stages } = bench({
      postedPs: (qpn, counter) => (qpn === QPN && counter === 7 ? 100_000 : -1),
      cqeIssued: (...values) => issued.push(values),
    });
    ledger.completed(record, 930, false);
    // doorbell 100→110, WQE fetch →150, scheduling →155, payload read →190, transmit →220, remote →900, completion →930.
    expect(stages()).toEqual([10, 40, 5, 35, 30, 680, 30].map((cycles) => cycles * 1000));
    expect(ledger.lifePs[WqeOpcode.RDMA_WRITE]).toBe(830_000);
    expect([
      ledger.count[WqeOpcode.RDMA_WRITE],
      ledger.payloadBytes[WqeOpcode.RDMA_WRITE],
      ledger.disorderCount,
    ]).toEqual([1, 64, 0]);
    expect(issued).toEqual([[QPN, 7, 930_000]]);
  });

  it('begins with the fetch when nobody knows the posting time', () => {
    const { ledger, record, stages } = bench();
    ledger.completed(record, 930, true);
    expect(stages()[0]).toBe(0);
    expect([ledger.lifePs[WqeOpcode.RDMA_WRITE], ledger.silentCount[WqeOpcode.RDMA_WRITE]]).toEqual([
      820_000, 1,
    ]);
  });

  it('gives a WQE that was on chip before it was posted no time of a fetch, and still leaves no gap', () => {
    const { ledger, record, stages } = bench({ postedPs: () => 152_000, cqeIssued: () => undefined });
    ledger.completed(record, 930, false);
    expect(stages()).toEqual([0, 0, 3, 35, 30, 680, 30].map((cycles) => cycles * 1000));
    expect(ledger.lifePs[WqeOpcode.RDMA_WRITE]).toBe(778_000);
  });

  it('counts failures apart, without stages', () => {
    const { ledger, record, records, stages } = bench();
    records.rows[record]!.syndrome = 5;
    ledger.completed(record, 930, false);
    expect(stages().every((ps) => ps === 0)).toBe(true);
    expect([ledger.count[WqeOpcode.RDMA_WRITE], ledger.failedCount[WqeOpcode.RDMA_WRITE]]).toEqual([0, 1]);
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
      const stages = operations.stagePs
        .subarray(opcode * operationStages.length)
        .subarray(0, operationStages.length);
      expect([opcode, operations.count[opcode]]).toEqual([opcode, 1]);
      expect(stages.reduce((sum, ps) => sum + ps, 0)).toBe(operations.lifePs[opcode]);
      expect(operations.lifePs[opcode]).toBeGreaterThan(0);
    }
    expect(operations.disorderCount).toBe(0);
  });
});
