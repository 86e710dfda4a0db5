/**
 * Commands of a rough guest: any opcode with a mailbox that is legal, nearly legal, or random; half of them for
 * existing objects.
 */
import * as abi from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import type { Draw } from './draw.ts';
import { inBoxAddress, ramBytes } from './guest-life.ts';
import { pageBytes } from './guest-ram.ts';
import { type ContextLayout, spoil } from './hostile-fields.ts';
import { isTransition, type ObjectKind, type RoughObjects } from './rough-objects.ts';
import {
  icmBase,
  icmTables,
  initialProfile,
  pd,
  qpn,
  uarPage,
  wellBehavedLid,
} from './well-behaved-guest.ts';

/** One command, ready to be posted. */
export interface RoughCommand {
  readonly name: abi.CommandName | undefined;
  readonly opcode: number;
  readonly inputModifier: number;
  readonly opcodeModifier: number;
  readonly inParam: number;
  readonly inBox: Uint8Array | undefined;
  /** undefined: no out box. */
  readonly outBytes: number | undefined;
  /** Fields of the mailbox that are odd. */
  readonly odd: readonly string[];
}

/** A command as it would be legal. */
interface Form {
  readonly inputModifier?: number;
  readonly opcodeModifier?: number;
  readonly inBox?: Uint8Array;
  /** Layout of the mailbox. */
  readonly layout?: ContextLayout;
  readonly inParam?: number;
}

/** Translations that a rough guest writes for its queues, and the pages that they lead to. */
export const roughMtt = { first: 64, count: 256, begin: 0x40_0000 } as const;
/** Four pages for each of its QPs. */
export const pagesOfQueue = 4;
export const recordArea = { begin: 0x3000, bytes: 256 } as const;
const outBoxBytes = 64;

const commandsOf = {
  eq: { create: 'SW2HW_EQ', destroy: 'HW2SW_EQ', change: 'MAP_EQ' },
  cq: { create: 'SW2HW_CQ', destroy: 'HW2SW_CQ', change: 'MODIFY_CQ' },
  srq: { create: 'SW2HW_SRQ', destroy: 'HW2SW_SRQ', change: 'ARM_SRQ' },
  mpt: { create: 'SW2HW_MPT', destroy: 'HW2SW_MPT', change: 'QUERY_MPT' },
} as const;
const everyName = Object.keys(abi.commands) as abi.CommandName[];

export class RoughCommands {
  readonly #draw: Draw;
  readonly #random: Random;
  readonly #objects: RoughObjects;

  constructor(draw: Draw, objects: RoughObjects) {
    this.#draw = draw;
    this.#random = draw.random;
    this.#objects = objects;
  }

  /** Any command. */
  any(): RoughCommand {
    const random = this.#random;
    if (random.chance(0.03)) return this.#nonsense(random.below(4096));
    if (random.chance(0.05)) return this.#nonsense(abi.Opcode[this.#draw.pick(everyName)]);
    const name = this.#draw.weighted(commandWeights);
    return this.#made(name, this.#forms[name]?.() ?? {});
  }

  /** INIT_HCA, before anything else can be created. */
  initialise(): RoughCommand {
    return this.#made('INIT_HCA', this.#forms.INIT_HCA!());
  }

  /** Draws a command that creates or changes an object by its context. */
  withContext(): RoughCommand {
    const kind = this.#draw.weighted({ eq: 1, cq: 2, srq: 1, mpt: 2, qp: 5 });
    if (kind === 'qp') {
      const { name, qp } = this.#objects.transition();
      return this.#made(name, this.#transitionForm(name, qp));
    }
    const { create, destroy, change } = commandsOf[kind];
    const chance = this.#random.unit();
    const name = chance < 0.2 ? destroy : chance < 0.4 ? change : create;
    return this.#made(name, this.#forms[name]!());
  }

  /** Random bytes, which fit only by chance. */
  #nonsense(opcode: number): RoughCommand {
    const random = this.#random;
    return {
      name: everyName.find((name) => abi.Opcode[name] === opcode),
      opcode,
      inputModifier: random.chance(0.5) ? random.below(300) : random.uint32(),
      opcodeModifier: random.below(16),
      inParam: random.chance(0.7) ? inBoxAddress : this.#draw.oddNumber(),
      inBox: random.chance(0.5) ? this.#draw.bytes(random.chance(0.5) ? 64 : 1024) : undefined,
      outBytes: random.chance(0.8) ? outBoxBytes : undefined,
      odd: [],
    };
  }

  #made(name: abi.CommandName, form: Form): RoughCommand {
    const random = this.#random;
    const { inputModifier = 0, opcodeModifier = 0, inBox, layout } = form;
    const odd = layout === undefined || inBox === undefined ? [] : spoil(this.#draw, layout, inBox);
    if (layout === undefined && inBox !== undefined && random.chance(0.2)) this.#draw.flip(inBox, 3);
    const isOdd = random.chance(0.12);
    const oddPart = isOdd ? random.below(3) : -1;
    return {
      name,
      opcode: abi.Opcode[name],
      inputModifier: oddPart === 0 ? this.#oddModifier(inputModifier) : inputModifier,
      opcodeModifier: oddPart === 1 ? random.below(16) : opcodeModifier,
      inParam:
        oddPart === 2 ? this.#draw.oddNumber() : (form.inParam ?? (inBox === undefined ? 0 : inBoxAddress)),
      inBox,
      outBytes: random.chance(0.96) ? outBoxBytes : undefined,
      odd: isOdd ? [] : odd,
    };
  }

  #oddModifier(legal: number): number {
    const random = this.#random;
    return this.#draw.any(
      () => (legal ^ (1 << random.below(32))) >>> 0,
      () => random.below(1024),
      () => 0,
      () => random.uint32(),
    );
  }

  // ---- forms: the default for commands that are not listed is 0 everywhere ----

  readonly #forms: Readonly<Partial<Record<abi.CommandName, () => Form>>> = {
    MAP_FA: () => this.#mapForm(() => 0),
    QUERY_PORT: () => ({ inputModifier: 1 }),
    SENSE_PORT: () => ({ inputModifier: 1 }),
    MOD_STAT_CFG: () => ({ inputModifier: 0x100, opcodeModifier: this.#random.below(4) }),
    NOP: () => ({ inputModifier: 0x1f }),
    SET_ICM_SIZE: () => ({ inParam: icmTables.length << 24 }),
    MAP_ICM_AUX: () => this.#mapForm(() => 0),
    MAP_ICM: () =>
      this.#mapForm(() => icmBase(this.#draw.pick(icmTables)) + this.#random.below(4096) * pageBytes),
    UNMAP_ICM: () => ({
      inParam: icmBase(this.#draw.pick(icmTables)) + this.#random.below(64) * pageBytes,
      inputModifier: 2 ** this.#random.below(4),
    }),
    INIT_HCA: () => ({ inBox: abi.initHca.encode(initialProfile()), layout: abi.initHca }),
    INIT_PORT: () => ({ inputModifier: 1 }),
    CLOSE_PORT: () => ({ inputModifier: 1 }),
    SET_PORT: () => ({
      inputModifier: 1,
      inBox: abi.setPortInfiniband.encode({ changeMtuCap: 1, mtuCap: 5, changeVlCap: 1, vlCount: 4 }),
      layout: abi.setPortInfiniband,
    }),
    MAD_IFC: () => this.#madForm(),
    SET_NODE: () => ({
      inputModifier: 1,
      inBox: abi.setNode.encode({ description: this.#draw.bytes(64) }),
      layout: abi.setNode,
    }),
    MGID_HASH: () => ({ inBox: this.#draw.bytes(16) }),
    READ_MCG: () => ({ inputModifier: this.#random.below(8192) }),
    WRITE_MCG: () => {
      const memberCount = this.#random.below(4);
      const members = Array.from({ length: 248 }, () => ({ qpn: qpn(this.#random.below(8)) }));
      const inBox = abi.mcgEntry.encode({ memberCount, mgid: this.#draw.bytes(16), members });
      const isDefault = this.#random.chance(0.2);
      return {
        inputModifier: isDefault ? 0x1_0000 | (this.#random.below(2) << 1) : this.#random.below(8192),
        opcodeModifier: isDefault ? 1 : 0,
        inBox,
        layout: abi.mcgEntry,
      };
    },
    DIAG_RPRT: () => ({ inputModifier: this.#random.below(2), opcodeModifier: 2 }),
    MAP_EQ: () => ({
      inParam: this.#random.uint32(),
      inputModifier: this.#objects.number('eq', true) + (this.#random.chance(0.2) ? 0x8000_0000 : 0),
    }),
    QUERY_EQ: () => ({ inputModifier: this.#objects.number('eq', true) }),
    QUERY_CQ: () => ({ inputModifier: this.#objects.number('cq', true) }),
    QUERY_SRQ: () => ({ inputModifier: this.#objects.number('srq', true) }),
    QUERY_MPT: () => ({ inputModifier: this.#objects.number('mpt', true) }),
    QUERY_QP: () => ({ inputModifier: qpn(this.#objects.queuePair([1, 2, 3, 4, 5, 6])) }),
    ARM_SRQ: () => ({ inputModifier: this.#objects.number('srq', true), inParam: this.#random.below(4) }),
    WRITE_MTT: () => this.#writeMttForm(),
    READ_MTT: () => ({ inParam: this.#mttAddress(), inputModifier: this.#random.between(1, 16) }),
    PAGE_FAULT_RESUME: () => ({
      inputModifier: this.#random.below(4),
      opcodeModifier: this.#random.below(2),
    }),
    CONF_SPECIAL_QP: () => ({ inputModifier: 64 + 8 * this.#random.below(4) }),
    SW2HW_EQ: () => ({
      inputModifier: this.#objects.number('eq', false),
      inBox: abi.eqc.encode({
        armState: 9,
        logEntries: this.#random.between(3, 8),
        mttAddress: this.#mttAddress(),
        interruptNumber: this.#random.below(5),
      }),
      layout: abi.eqc,
    }),
    SW2HW_CQ: () => ({
      inputModifier: this.#objects.number('cq', false),
      opcodeModifier: this.#random.below(2),
      ...this.#cqContext(),
    }),
    MODIFY_CQ: () => ({
      inputModifier: this.#objects.number('cq', true),
      opcodeModifier: this.#random.below(2),
      ...this.#cqContext(),
    }),
    SW2HW_SRQ: () => ({
      inputModifier: this.#objects.number('srq', false),
      inBox: abi.srqc.encode({
        logWqes: this.#random.between(1, 8),
        logStride16: this.#random.between(1, 3),
        mttAddress: this.#mttAddress(),
        pd,
        doorbellRecordAddress: this.#record(),
      }),
      layout: abi.srqc,
    }),
    SW2HW_MPT: () => this.#regionForm(),
    HW2SW_EQ: () => this.#destroyForm('eq'),
    HW2SW_CQ: () => this.#destroyForm('cq'),
    HW2SW_SRQ: () => this.#destroyForm('srq'),
    HW2SW_MPT: () => this.#destroyForm('mpt'),
  };

  #destroyForm(kind: ObjectKind): Form {
    return { inputModifier: this.#objects.number(kind, true), opcodeModifier: this.#random.below(2) };
  }

  #mapForm(icmAddress: () => number): Form {
    const count = this.#random.chance(0.8) ? 1 : this.#random.between(2, 6);
    const entries = Array.from({ length: count }, () => {
      const logSize4k = this.#random.below(7);
      const pages = 2 ** logSize4k;
      return abi.mapEntry.encode({
        icmAddress: BigInt(Math.floor(icmAddress() / (pages * pageBytes)) * pages * pageBytes),
        physicalAddress: BigInt(
          this.#random.below(Math.floor(ramBytes / pageBytes / pages)) * pages * pageBytes,
        ),
        logSize4k,
      });
    });
    return { inputModifier: count, inBox: Buffer.concat(entries), layout: abi.mapEntry };
  }

  #madForm(): Form {
    const random = this.#random;
    const isPerformance = random.chance(0.4);
    const attributes: readonly number[] = Object.values(
      isPerformance ? abi.PerformanceAttribute : abi.SmpAttribute,
    );
    const inBox = abi.mad.encode({
      baseVersion: 1,
      managementClass: isPerformance ? abi.MadClass.PERF_MGMT : abi.MadClass.SUBN_LID_ROUTED,
      classVersion: 1,
      method: random.between(1, 2),
      attributeId: (random.chance(0.9) ? this.#draw.pick(attributes) : random.below(0x20)) as never,
      attributeModifier: random.chance(0.8) ? random.below(8) : random.uint32(),
    });
    inBox.set(this.#draw.bytes(192), abi.smpDataOffset);
    // Names an existing port, or sets nothing: PortSelect of counters, a possible PortInfo.
    if (random.chance(0.7)) inBox[abi.smpDataOffset + 1] = 1;
    if (random.chance(0.3)) inBox.set(this.#portInfo(), abi.smpDataOffset);
    return { inputModifier: 1, opcodeModifier: random.below(4), inBox, layout: abi.mad };
  }

  #portInfo(): Uint8Array {
    const random = this.#random;
    return abi.portInfo.encode({
      mkey: random.chance(0.3) ? BigInt(random.uint32()) : 0n,
      gidPrefix: BigInt(random.uint32()),
      lid: random.below(8),
      masterSmLid: random.below(8),
      portState: random.below(5) as never,
      neighborMtu: random.below(6) as never,
      lmc: random.below(8),
      operationalVls: random.below(8),
      linkDownDefault: random.below(4),
      clientReregister: random.below(2),
      subnetTimeout: random.below(32),
    });
  }

  #writeMttForm(): Form {
    const count = this.#random.between(1, 8);
    const inBox = new Uint8Array(abi.writeMttHeader.sizeBytes + count * abi.mttEntryBytes);
    abi.writeMttHeader.encodeInto({ mttAddress: BigInt(this.#mttAddress()) }, inBox);
    for (let at = 0; at < count; at++) {
      const pageAddress = BigInt(roughMtt.begin + this.#random.below(roughMtt.count) * pageBytes);
      abi.mttEntry.encodeInto(
        { pageAddress, present: 1 },
        inBox,
        abi.writeMttHeader.sizeBytes + at * abi.mttEntryBytes,
      );
    }
    return { inputModifier: count, inBox };
  }

  #regionForm(): Form {
    const random = this.#random;
    const index = this.#objects.number('mpt', false);
    const isPhysical = random.below(2);
    return {
      inputModifier: index,
      inBox: abi.mpt.encode({
        status: random.chance(0.2) ? 3 : 0,
        isRegion: 1,
        isPhysical,
        isOnDemand: random.chance(0.15) ? 1 : 0,
        localReadEnabled: 1,
        localWriteEnabled: random.chance(0.9) ? 1 : 0,
        remoteReadEnabled: random.chance(0.9) ? 1 : 0,
        remoteWriteEnabled: random.chance(0.9) ? 1 : 0,
        atomicEnabled: random.chance(0.9) ? 1 : 0,
        bindEnabled: random.below(2),
        keyIndexForm: abi.indexFormOfKey(((index & 0xff_ffff) << 8) >>> 0),
        pd,
        startAddress: 0n,
        lengthBytes: BigInt(random.chance(0.5) ? roughMtt.count * pageBytes : random.below(2 ** 31)),
        mttAddress: this.#mttAddress(),
        mttEntries: random.below(64),
        logPageSize: 12,
      }),
      layout: abi.mpt,
    };
  }

  #cqContext(): Form {
    return {
      inBox: abi.cqc.encode({
        logEntries: this.#random.between(1, 8),
        uarPage,
        eqn: this.#objects.number('eq', true) & 0x1ff,
        mttAddress: this.#mttAddress(),
        doorbellRecordAddress: this.#record(),
        moderationCount: this.#random.chance(0.3) ? this.#random.below(8) : 0,
        moderationPeriodUs: this.#random.chance(0.3) ? this.#random.below(8) : 0,
      }),
      layout: abi.cqc,
    };
  }

  #transitionForm(name: abi.CommandName, qp: number): Form {
    const inputModifier = qpn(qp) + (name === 'RTS2SQD_QP' && this.#random.chance(0.5) ? 0x8000_0000 : 0);
    const isWithout = name === '2RST_QP' || name === '2ERR_QP' || name === 'RTS2SQD_QP';
    if (isWithout && this.#random.chance(0.8)) return { inputModifier };
    return { inputModifier, inBox: this.#qpContext(name, qp), layout: abi.qpMailbox };
  }

  #qpContext(name: abi.CommandName, qp: number): Uint8Array {
    const random = this.#random;
    const sqLogCount = random.between(1, 6);
    if (isTransition(name) && name === 'RST2INIT_QP') this.#objects.sendLog[qp] = sqLogCount;
    return abi.qpMailbox.encode({
      optionalParameterMask: random.chance(0.3) ? random.uint32() : 0,
      context: {
        serviceType: this.#draw.pick([
          abi.ServiceType.RC,
          abi.ServiceType.RC,
          abi.ServiceType.RC,
          abi.ServiceType.UC,
          abi.ServiceType.UD,
          abi.ServiceType.MLX,
        ]),
        pathMigration: 3,
        pd,
        sqLogCount,
        sqLogStride16: 2,
        rqLogCount: random.between(1, 6),
        rqLogStride16: random.below(3),
        uarPage,
        localQpn: qpn(qp),
        sendCqn: this.#objects.number('cq', true) & 0xff_ffff,
        receiveCqn: this.#objects.number('cq', true) & 0xff_ffff,
        srqAttached: random.chance(0.15) ? 1 : 0,
        srqn: this.#objects.number('srq', true) & 0xff_ffff,
        pathMtu: random.between(1, 5) as never,
        logMaxMessage: 30,
        remoteQpn: qpn(random.below(8)),
        remoteReadEnabled: 1,
        remoteWriteEnabled: 1,
        remoteAtomicEnabled: 1,
        logMaxResponderReads: random.below(5),
        logMaxRequesterReads: random.below(5),
        retryCount: random.below(8),
        rnrRetryCount: random.below(8),
        minRnrNak: random.below(32),
        ackRequestFrequency: random.below(16),
        qkey: random.chance(0.8) ? 0x1111 : random.uint32(),
        reservedLkeyEnabled: random.below(2),
        fastRegisterEnabled: random.below(2),
        primaryPath: { remoteLid: wellBehavedLid, scheduleQueue: 0x83, ackTimeout: random.between(1, 12) },
        doorbellRecordAddress: BigInt(recordOfQueuePair(qp)),
        mttAddress: (roughMtt.first + pagesOfQueue * qp) * 8,
      },
    });
  }

  #mttAddress(): number {
    return (roughMtt.first + this.#random.below(roughMtt.count - 8)) * 8;
  }

  #record(): bigint {
    return BigInt(recordArea.begin + this.#random.below(recordArea.bytes / 8) * 8);
  }
}

/** Address of the doorbell record of a QP's receives: the first two belong to the well-behaved guest. */
export const recordOfQueuePair = (qp: number): number => recordArea.begin + 16 + 8 * qp;

/** MTT entries for all its queues, as they lie in the table. */
export function roughTranslations(): Uint8Array {
  const bytes = new Uint8Array(roughMtt.count * abi.mttEntryBytes);
  const view = viewOf(bytes);
  for (let at = 0; at < roughMtt.count; at++) {
    abi.mttEntry.fields.pageAddress.setNumber(view, at * abi.mttEntryBytes, roughMtt.begin + at * pageBytes);
    abi.mttEntry.fields.present.set(view, at * abi.mttEntryBytes, 1);
  }
  return bytes;
}

/** Weights. Commands that end a driver's life are rare, or few others would succeed. */
const commandWeights = {
  QUERY_FW: 1,
  MAP_FA: 0.5,
  UNMAP_FA: 0.05,
  RUN_FW: 0.3,
  QUERY_DEV_CAP: 1,
  QUERY_ADAPTER: 1,
  QUERY_PORT: 1,
  QUERY_HCA: 1,
  SENSE_PORT: 1,
  MOD_STAT_CFG: 1,
  NOP: 1,
  HW_HEALTH_CHECK: 1,
  SET_ICM_SIZE: 0.5,
  MAP_ICM_AUX: 0.5,
  UNMAP_ICM_AUX: 0.05,
  MAP_ICM: 2,
  UNMAP_ICM: 0.5,
  INIT_HCA: 1,
  CLOSE_HCA: 0.04,
  INIT_PORT: 1,
  CLOSE_PORT: 0.2,
  SET_PORT: 2,
  MAD_IFC: 6,
  SET_NODE: 1,
  MGID_HASH: 1,
  READ_MCG: 1,
  WRITE_MCG: 2,
  DIAG_RPRT: 1,
  MAP_EQ: 1,
  QUERY_EQ: 1,
  QUERY_CQ: 1,
  QUERY_SRQ: 1,
  QUERY_MPT: 1,
  QUERY_QP: 2,
  ARM_SRQ: 1,
  WRITE_MTT: 1.5,
  READ_MTT: 1,
  SYNC_TPT: 1,
  PAGE_FAULT_RESUME: 1,
  INVALIDATE_PAGES: 1,
  CONF_SPECIAL_QP: 1,
} as const satisfies Partial<Record<abi.CommandName, number>>;
