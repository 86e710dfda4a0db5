/**
 * BAR2: doorbells by register, and BlueFlame posts, assembled from their pieces and decoded as WQEs. Source: interface
 * sheet 6.9.
 */
import {
  type BlueFlameGeometry,
  barSizeBytes,
  blueFlameCopyBytes,
  blueFlameHead,
  cqArm,
  cqArmOffset,
  eqDoorbell,
  eqNumberOfDoorbell,
  isEqDoorbell,
  offsetInBlueFlameHalf,
  ServiceType,
  sendDoorbell,
  uarOffset,
  uarPageBytes,
  uarPageOf,
  wqeUnitBytes,
} from '../abi/index.ts';
import { viewOf } from '../base/index.ts';
import type { DeviceView } from './follow/device-view.ts';
import type { FollowedQp } from './follow/objects.ts';
import { blocksOf } from './follow/send-queue.ts';
import { anyLayout, fieldsSetIn, fieldText } from './layout-fields.ts';
import type { Linter } from './lint/linter.ts';
import {
  checkArm,
  checkBlueFlame,
  checkDoorbellBits,
  checkEqDoorbell,
  checkRing,
  checkSendWqe,
} from './lint/queue-rules.ts';
import type { Trace } from './trace.ts';
import { hex, type ObjectNumbers } from './trace-event.ts';
import { sectionsOf, walkSendWqe } from './wqe-segments.ts';

const specialQpBits = 7;

/** An incomplete BlueFlame post. */
interface Post {
  readonly page: number;
  readonly half: number;
  readonly bytes: Uint8Array;
  have: number;
}

/** Whether the WQEs of an MLX QP carry Ethernet headers: true for all but the special QPs. */
export const isRawQp = (view: DeviceView, qp: FollowedQp): boolean =>
  qp.serviceType === ServiceType.MLX &&
  view.specialQpBase >= 0 &&
  (qp.qpn & ~specialQpBits) !== view.specialQpBase;

export class UarFollower {
  readonly #trace: Trace;
  readonly #view: DeviceView;
  readonly #linter: Linter | undefined;
  readonly #posts: Post[] = [];
  /** First half of an arm that is written as two dwords, and its page. */
  #halfArm: { readonly page: number; readonly bytes: Uint8Array } | undefined;

  constructor(trace: Trace, view: DeviceView, linter: Linter | undefined) {
    this.#trace = trace;
    this.#view = view;
    this.#linter = linter;
  }

  store(offset: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const geometry = this.#geometry();
    const page = uarPageOf(geometry, offset);
    if (offset >= geometry.uarAreaBytes) return this.#blueFlame(geometry, offset, page, bytes, nowPs);
    const within = offset % uarPageBytes;
    if (within === uarOffset.sendDoorbell && bytes.length === 4) this.#send(page, address, bytes, nowPs);
    else if (within === uarOffset.cqArm && bytes.length === 8) this.#arm(page, address, bytes, nowPs);
    else if (within === uarOffset.cqArm && bytes.length === 4) this.#halfArm = { page, bytes: bytes.slice() };
    else if (within === cqArmOffset(0) + 4 && bytes.length === 4 && this.#halfArm?.page === page) {
      const whole = new Uint8Array([...this.#halfArm.bytes, ...bytes]);
      this.#halfArm = undefined;
      this.#arm(page, address - 4, whole, nowPs);
    } else if (isEqDoorbell(within) && bytes.length === 4)
      this.#eq(eqNumberOfDoorbell(page, within), address, bytes, nowPs);
    else if (page === 0 && within === uarOffset.invalidate && bytes.length === 4)
      this.#trace.emit('doorbells', nowPs, 'cached translations forgotten', {
        objects: { uar: page },
        address,
        lengthBytes: bytes.length,
      });
    else {
      const text = `UAR ${hex(page)} + ${hex(within)}: ${bytes.length} bytes at an offset that is no doorbell`;
      this.#trace.emit('doorbells', nowPs, text, {
        objects: { uar: page },
        address,
        lengthBytes: bytes.length,
      });
      this.#linter?.context.beginAccess(
        `a store of ${bytes.length} bytes to UAR ${hex(page)} + ${hex(within)}`,
        nowPs,
      );
      this.#linter?.context.report(
        'doorbell-offset',
        `UAR ${hex(page)}`,
        `${bytes.length} bytes at ${hex(within)}`,
      );
    }
  }

  reset(): void {
    this.#posts.length = 0;
    this.#halfArm = undefined;
  }

  /** BlueFlame geometry of QUERY_DEV_CAP; before that command, the usual card's. */
  #geometry(): BlueFlameGeometry {
    const cap = this.#view.capabilities;
    if (cap === undefined)
      return { uarAreaBytes: barSizeBytes.uar / 2, registerBytes: 512, registersPerPage: 8 };
    return {
      uarAreaBytes: 2 ** (cap.logUarAreaMib + 20),
      registerBytes: 1 << cap.logBlueFlameRegisterBytes,
      registersPerPage: 1 << cap.logBlueFlameRegistersPerPage,
    };
  }

  #say(
    what: string,
    objects: ObjectNumbers,
    page: number,
    address: number,
    bytes: Uint8Array,
    nowPs: number,
  ): void {
    const details = { objects: { ...objects, uar: page }, address, lengthBytes: bytes.length };
    this.#trace.emit('doorbells', nowPs, what, details);
  }

  #send(page: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const qpn = sendDoorbell.fields.qpn.get(viewOf(bytes), 0);
    if (this.#trace.wants('doorbells'))
      this.#say(`send doorbell QP ${hex(qpn)} (UAR ${hex(page)})`, { qpn }, page, address, bytes, nowPs);
    const lint = this.#linter?.context;
    if (lint === undefined) return;
    lint.beginAccess(`a send doorbell for QP ${hex(qpn)} by UAR page ${hex(page)}`, nowPs);
    checkDoorbellBits(lint, anyLayout(sendDoorbell), bytes);
    checkRing(lint, qpn, page);
  }

  #arm(page: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const arm = cqArm.decode(bytes);
    if (this.#trace.wants('doorbells')) {
      const fields = fieldsSetIn(anyLayout(cqArm), bytes).filter(({ name }) => name !== 'cqn');
      const text = `arm CQ ${hex(arm.cqn)} (UAR ${hex(page)}) ${fields.map(fieldText).join(' ')}`;
      this.#say(text, { cqn: arm.cqn }, page, address, bytes, nowPs);
    }
    const lint = this.#linter?.context;
    if (lint === undefined) return;
    lint.beginAccess(`an arm of CQ ${hex(arm.cqn)} by UAR page ${hex(page)}`, nowPs);
    checkDoorbellBits(lint, anyLayout(cqArm), bytes);
    checkArm(lint, arm, page);
  }

  #eq(eqn: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const doorbell = eqDoorbell.decode(bytes);
    const page = eqn >> 2;
    if (this.#trace.wants('doorbells')) {
      const arming = doorbell.arm === 1 ? ', arm' : '';
      const text = `EQ ${hex(eqn)} consumed ${hex(doorbell.consumerCounter)}${arming}`;
      this.#say(text, { eqn }, page, address, bytes, nowPs);
    }
    const lint = this.#linter?.context;
    if (lint === undefined) return;
    lint.beginAccess(`the doorbell of EQ ${hex(eqn)}`, nowPs);
    checkDoorbellBits(lint, anyLayout(eqDoorbell), bytes);
    checkEqDoorbell(lint, eqn, doorbell);
  }

  // Handles a BlueFlame store.

  #blueFlame(
    geometry: BlueFlameGeometry,
    offset: number,
    page: number,
    bytes: Uint8Array,
    nowPs: number,
  ): void {
    const within = offsetInBlueFlameHalf(geometry, offset);
    const half = offset - within;
    const at = this.#posts.findIndex((post) => post.half === half);
    if (within === 0) {
      if (at !== -1) this.#posts.splice(at, 1);
      this.#posts.push({ page, half, bytes: new Uint8Array(geometry.registerBytes >> 1), have: 0 });
    }
    const post = this.#posts.find((one) => one.half === half);
    if (post === undefined || within !== post.have) return;
    post.bytes.set(bytes.subarray(0, post.bytes.length - within), within);
    post.have += bytes.length;
    if (post.have < blueFlameHead.sizeBytes) return;
    const wanted = blueFlameHead.fields.ds.get(viewOf(post.bytes), 0) * wqeUnitBytes;
    if (post.have < Math.ceil(wanted / blueFlameCopyBytes) * blueFlameCopyBytes) return;
    this.#posts.splice(this.#posts.indexOf(post), 1);
    this.#posted(post, wanted, nowPs);
  }

  #posted({ page, bytes }: Post, sizeBytes: number, nowPs: number): void {
    const view = viewOf(bytes);
    const qpn = blueFlameHead.fields.qpn.get(view, 0);
    const wqeCounter = blueFlameHead.fields.wqeCounter.get(view, 0);
    const wqe = bytes.subarray(0, Math.max(wqeUnitBytes, sizeBytes));
    const qp = this.#view.qps.get(qpn);
    const isRaw = qp !== undefined && isRawQp(this.#view, qp);
    const walked = walkSendWqe(wqe, qp?.serviceType ?? ServiceType.RC, isRaw);
    if (this.#trace.wants('doorbells')) {
      const what = walked.name ?? `opcode ${hex(walked.opcode)}`;
      const text = `BlueFlame QP ${hex(qpn)} WQE ${hex(wqeCounter)} ${what}, ${sizeBytes} bytes (UAR ${hex(page)})`;
      const sections = sectionsOf(wqe, walked.parts);
      this.#trace.emit('doorbells', nowPs, text, { objects: { qpn, uar: page }, sections });
    }
    const lint = this.#linter?.context;
    if (lint !== undefined) {
      lint.beginAccess(`a BlueFlame post for QP ${hex(qpn)} by UAR page ${hex(page)}`, nowPs);
      const rung = checkRing(lint, qpn, page);
      if (rung !== undefined) checkBlueFlame(lint, rung, wqeCounter, wqe);
    }
    if (qp === undefined || wqeCounter !== qp.fetchedBlock) return;
    if (lint !== undefined) checkSendWqe(lint, qp, wqeCounter, walked, wqe);
    qp.took(wqeCounter, blocksOf(qp, sizeBytes));
  }
}
