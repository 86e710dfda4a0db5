/**
 * The commands of a real Linux driver, as recorded in reference/golden: its probe up to an active port, and its
 * removal. Every one must end with status 0, polled ones in the HCR and the others as an EQE with their token.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bar0 } from '../../../../abi/bar-map.ts';
import { commandEqe, EventType } from '../../../../abi/eqe.ts';
import { hcr } from '../../../../abi/hcr.ts';
import { goldenFolder } from '../../../../abi/testing/golden.ts';
import { fromHex, viewOf } from '../../../../base/index.ts';
import { ControlBench } from '../../testing/control-bench.ts';

interface Line {
  readonly kind: string;
  readonly op: string;
  readonly seq: number;
  readonly opcode: string;
  readonly op_mod: number;
  readonly in_mod: string;
  readonly event: number;
  readonly go_dword: string;
  readonly token: string;
  readonly in_param: string;
  readonly out_param: string;
  readonly input?: string;
  readonly mtt_offset: string;
  readonly pages: number;
  readonly entries: string;
  readonly eqn: number;
  readonly arm: number;
}

const linesOf = (file: string): Line[] =>
  readFileSync(join(goldenFolder, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

/** Replays captured lines and records the outcome of each command. */
class Replay {
  /** The capturing device had other limits; the driver's bytes follow from them. */
  readonly bench = new ControlBench({}, { logUarAreaMib: 4, logAuxPageRatio: 29, logReservedMpts: 4 });
  readonly outcomes: { op: string; seq: number; status: number }[] = [];
  #asyncPage = 0;
  #consumed = 0;

  play(line: Line): void {
    if (line.kind === 'mtt') this.#storeTranslations(line);
    if (line.kind === 'hcr') this.#command(line);
    if (line.kind === 'eq_doorbell') {
      // The captures leave repeated doorbells out: the counter is ours, the request is the driver's.
      const { events, eqs } = this.bench.control;
      const slot = eqs.slotOf(line.eqn);
      const counter = slot < 0 ? 0 : eqs.producerCounter[slot]!;
      events.eqDoorbell(line.eqn, counter, line.arm === 1, this.bench.cycle);
    }
  }

  /** Linux writes MTT entries straight into the donated pages. Only the first four were captured; the rest are invented. */
  #storeTranslations(line: Line): void {
    const { memory, icm } = this.bench;
    const captured = fromHex(line.entries);
    for (let page = 0; page < line.pages; page++) {
      const invented = new Uint8Array(8);
      viewOf(invented).setUint32(4, 0x6000_0000 + (Number(line.mtt_offset) / 8 + page) * 4096 + 1);
      const entry = page < 4 ? captured.subarray(page * 8, page * 8 + 8) : invented;
      memory.write(icm.translationAddress(Number(line.mtt_offset) + page * 8), entry);
    }
    if (Number(line.mtt_offset) === 0x80) this.#asyncPage = viewOf(captured).getUint32(4) - 1;
  }

  #command(line: Line): void {
    const { bench } = this;
    if (line.input !== undefined) {
      bench.memory.write(Number(line.in_param), new Uint8Array(4096));
      bench.memory.write(Number(line.in_param), fromHex(line.input));
    }
    const image = hcr.encode({
      inParam: BigInt(line.in_param),
      inputModifier: Number(line.in_mod),
      outParam: BigInt(line.out_param),
      token: Number(line.token),
    });
    const view = viewOf(image);
    view.setUint32(0x18, Number.parseInt(line.go_dword, 16));
    for (let at = 0; at < hcr.sizeBytes; at += 4)
      bench.write32(bar0.registers.hcr.offset + at, view.getUint32(at));
    bench.run();
    const status = line.event === 1 ? this.#statusByEvent(line) : hcr.fields.status.get(bench.goDword(), 0);
    this.outcomes.push({ op: line.op, seq: line.seq, status });
    expect(hcr.fields.toggle.get(bench.goDword(), 0)).toBe(hcr.fields.toggle.get(view, 0));
    expect(hcr.fields.go.get(bench.goDword(), 0)).toBe(0);
  }

  /** Status of the completion EQE that must follow, after any other events. */
  #statusByEvent(line: Line): number {
    for (;;) {
      const at = this.#asyncPage + (this.#consumed % 128) * 32; // the first page holds 128 of the 512 entries
      const eqe = viewOf(this.bench.memory.read(at, 32));
      this.#consumed++;
      if (commandEqe.fields.owner.get(eqe, 0) !== 0) return -1;
      if (commandEqe.fields.type.get(eqe, 0) !== EventType.CMD) continue;
      expect(commandEqe.fields.token.get(eqe, 0)).toBe(Number(line.token));
      return commandEqe.fields.status.get(eqe, 0);
    }
  }
}

describe('the commands of a stock Linux driver', () => {
  const replay = new Replay();
  beforeAll(() => {
    for (const line of linesOf('a-probe.jsonl')) replay.play(line);
  });

  it('golden captures: probe with status 0 throughout', () => {
    expect(replay.outcomes.filter(({ status }) => status !== 0)).toEqual([]);
    expect(replay.outcomes.length).toBe(91);
  });

  it('leave three EQs, a CQ and its QPs alive', () => {
    const { tables, control } = replay.bench;
    expect(control.eqs.liveSlots().map((slot) => control.eqs.numberOf[slot])).toEqual([32, 33, 34]);
    expect(tables.cqs.liveCount).toBe(1);
    expect(tables.qps.liveCount).toBe(2);
    expect(control.blocks.commandSet.specialQpBase).toBe(0x200);
  });

  it('are notified of no violation and interrupt through vector 0 alone', () => {
    expect(replay.bench.control.violations.report()).toEqual({});
    expect(new Set(replay.bench.interrupts.messages.map(({ vector }) => vector))).toEqual(new Set([0]));
  });

  it('golden captures: remove everything with status 0 and get all pages back', () => {
    const { outcomes, bench } = replay;
    const before = outcomes.length;
    for (const line of linesOf('a-remove.jsonl')) replay.play(line);
    expect(outcomes.slice(before).filter(({ status }) => status !== 0)).toEqual([]);
    const { icm } = bench;
    expect([icm.mappedPageCount, icm.auxiliaryPageCount, icm.firmwarePageCount]).toEqual([0, 0, 0]);
  });
});
