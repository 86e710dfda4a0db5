/** A process with an open device, for the driver's specs, and helpers that bring one of its QPs to RTS as rc_pingpong does. */
import type { HcrLine } from '../abi/testing/golden.ts';
import { defaultsOf } from '../base/parameter.ts';
import { Driver } from './driver.ts';
import type { CreateQp, KernelContext } from './kernel-verbs.ts';
import { type DriverConfig, driverParameters } from './parameters.ts';
import type { Neighbour } from './platform.ts';
import { type Script, TestMachine } from './testing.ts';
import { goldenCommands, goldenDevice } from './testing-answers.ts';
import type { TestProcess } from './testing-process.ts';
import { QpAttrMask as M, QpStateVerb, QpTypeVerb } from './uapi.ts';

const { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS } = QpStateVerb;

/** The first command of this name in a capture. */
export const captured = (file: string, op: string, inModifier?: string): HcrLine =>
  goldenCommands(file).find((line) => line.op === op && (inModifier ?? line.in_mod) === line.in_mod)!;

const gid = new Uint8Array(16).fill(0xfe);
export const toInit = { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 };
export const initMask = M.IBV_QP_STATE | M.IBV_QP_PKEY_INDEX | M.IBV_QP_PORT | M.IBV_QP_ACCESS_FLAGS;
export const toRtr = {
  qpState: IBV_QPS_RTR,
  pathMtu: 3,
  destQpNum: 0x209,
  rqPsn: 0x3f6d44,
  maxDestRdAtomic: 1,
  minRnrTimer: 12,
  ahAttr: {
    isGlobal: 1,
    dlid: 1,
    sl: 0,
    srcPathBits: 0,
    portNum: 1,
    grh: { dgid: gid, flowLabel: 0, sgidIndex: 0, hopLimit: 1, trafficClass: 0 },
  },
} as const;
export const rtrMask =
  M.IBV_QP_STATE |
  M.IBV_QP_AV |
  M.IBV_QP_PATH_MTU |
  M.IBV_QP_DEST_QPN |
  M.IBV_QP_RQ_PSN |
  M.IBV_QP_MAX_DEST_RD_ATOMIC |
  M.IBV_QP_MIN_RNR_TIMER;
export const toRts = {
  qpState: IBV_QPS_RTS,
  timeout: 14,
  retryCnt: 7,
  rnrRetry: 7,
  sqPsn: 1,
  maxRdAtomic: 1,
};
export const rtsMask =
  M.IBV_QP_STATE |
  M.IBV_QP_TIMEOUT |
  M.IBV_QP_RETRY_CNT |
  M.IBV_QP_RNR_RETRY |
  M.IBV_QP_SQ_PSN |
  M.IBV_QP_MAX_QP_RD_ATOMIC;

export class TestContext {
  readonly machine: TestMachine;
  readonly driver: Driver;
  readonly process: TestProcess;
  readonly context: KernelContext;

  private constructor(machine: TestMachine, driver: Driver, process: TestProcess, context: KernelContext) {
    this.machine = machine;
    this.driver = driver;
    this.process = process;
    this.context = context;
  }

  /** Opens a separate machine whose device answers as the captured one did; no command is recorded yet. */
  static async open(): Promise<TestContext> {
    const opened = await TestContext.openWith(goldenDevice);
    opened.machine.commands.length = 0;
    return opened;
  }

  /** Opens the same with another device, whose probe is recorded. */
  static async openWith(
    script: Script,
    neighbours: readonly Neighbour[] = [],
    changed: Partial<DriverConfig> = {},
  ): Promise<TestContext> {
    const machine = new TestMachine();
    machine.script = script;
    const config = { ...defaultsOf(driverParameters), completionEqEntries: 128, ...changed };
    const driver = new Driver({ ...machine.platform, neighbours }, config);
    await driver.probe(machine.cpu);
    const process = machine.newProcess();
    const context = await driver.openDevice(machine.cpu, process);
    return new TestContext(machine, driver, process, context);
  }

  async createCq(entries = 512): Promise<number> {
    const request = {
      entries,
      bufferAddress: this.process.map(entries * 32),
      doorbellRecordAddress: this.process.map(4096),
      channel: -1,
      completionVector: 0,
    };
    return (await this.context.createCq(this.machine.cpu, request)).handle;
  }

  async createQp(overrides: Partial<CreateQp> = {}): Promise<{ handle: number; qpn: number }> {
    const { context, machine, process } = this;
    const pd = overrides.pd ?? (await context.allocPd(machine.cpu)).handle;
    const sendCq = overrides.sendCq ?? (await this.createCq());
    return context.createQp(machine.cpu, {
      pd,
      type: QpTypeVerb.IBV_QPT_RC,
      sendCq,
      receiveCq: sendCq,
      srq: -1,
      logSendWqes: 6,
      logSendStride: 6,
      receiveWqes: 512,
      logReceiveStride: 4,
      bufferAddress: process.map(4096 * 3),
      bufferBytes: 4096 * 3,
      doorbellRecordAddress: process.map(4096),
      cap: { maxSendWr: 1, maxRecvWr: 500, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 },
      ...overrides,
    });
  }

  /** A QP in RTS. */
  async connected(): Promise<number> {
    const { context, machine } = this;
    const { handle } = await this.createQp();
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
    await context.modifyQp(machine.cpu, handle, toRtr, rtrMask);
    await context.modifyQp(machine.cpu, handle, toRts, rtsMask);
    return handle;
  }
}
