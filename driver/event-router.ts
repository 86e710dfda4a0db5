/**
 * Routes events: the EQE's number identifies the object, and the object's owner is notified. Completion events wake
 * their channel, command events their thread, asynchronous ones become the verbs' event types (interface sheet 6.7).
 *
 * An event for an object that no longer exists was in flight when the object was destroyed: it is counted and dropped.
 */
import {
  commandEqe,
  completionEqe,
  cqErrorEqe,
  EventType,
  eqe,
  PortChange,
  PortInfoChange,
  PortManagementChange,
  portChangeEqe,
  portInfoChangeEqe,
  qpEqe,
  srqEqe,
} from '../abi/index.ts';
import type { KernelMemory } from './platform.ts';
import { AsyncEventType } from './uapi.ts';

/** The owner of a queue, as event handling sees it. */
export interface EventSink {
  /** A completion event of this CQ. */
  completion?(): void;
  asyncEvent(type: AsyncEventType): void;
}

export type PortListener = (port: number, type: AsyncEventType) => void;
export type CommandListener = (token: number, status: number, immediate: number) => void;

const qpEvents: { readonly [type: number]: AsyncEventType } = {
  [EventType.PATH_MIG]: AsyncEventType.IBV_EVENT_PATH_MIG,
  [EventType.COMM_EST]: AsyncEventType.IBV_EVENT_COMM_EST,
  [EventType.SQ_DRAINED]: AsyncEventType.IBV_EVENT_SQ_DRAINED,
  [EventType.SRQ_QP_LAST_WQE]: AsyncEventType.IBV_EVENT_QP_LAST_WQE_REACHED,
  [EventType.WQ_CATAS_ERROR]: AsyncEventType.IBV_EVENT_QP_FATAL,
  [EventType.PATH_MIG_FAILED]: AsyncEventType.IBV_EVENT_PATH_MIG_ERR,
  [EventType.WQ_INVAL_REQ_ERROR]: AsyncEventType.IBV_EVENT_QP_REQ_ERR,
  [EventType.WQ_ACCESS_ERROR]: AsyncEventType.IBV_EVENT_QP_ACCESS_ERR,
};
const srqEvents: { readonly [type: number]: AsyncEventType } = {
  [EventType.SRQ_LIMIT]: AsyncEventType.IBV_EVENT_SRQ_LIMIT_REACHED,
  [EventType.SRQ_CATAS_ERROR]: AsyncEventType.IBV_EVENT_SRQ_ERR,
};

export class EventRouter {
  readonly cqs = new Map<number, EventSink>();
  readonly qps = new Map<number, EventSink>();
  readonly srqs = new Map<number, EventSink>();
  readonly portListeners = new Set<PortListener>();
  /** Events of destroyed objects, and of types that the driver does not use. */
  droppedEvents = 0;
  /** Handles page requests, by the physical address of the EQE. */
  pageRequested: ((address: number) => void) | undefined;
  /** Takes events of TCP connections, by the physical address of the EQE. */
  tcpEvent: ((address: number) => void) | undefined;
  private readonly memory: KernelMemory;
  private readonly commandDone: CommandListener;

  constructor(memory: KernelMemory, commandDone: CommandListener) {
    this.memory = memory;
    this.commandDone = commandDone;
  }

  /** Delivers the EQE at a physical address. */
  dispatch(address: number): void {
    const type = eqe.fields.type.get(this.memory.view, address);
    switch (type) {
      case EventType.COMP:
        this.completion(completionEqe.fields.cqn.get(this.memory.view, address));
        break;
      case EventType.CMD:
        this.command(address);
        break;
      case EventType.CQ_ERROR:
        this.notify(
          this.cqs.get(cqErrorEqe.fields.cqn.get(this.memory.view, address)),
          AsyncEventType.IBV_EVENT_CQ_ERR,
        );
        break;
      case EventType.PORT_CHANGE:
        this.portChange(address);
        break;
      case EventType.PAGE_REQUEST:
        if (this.pageRequested === undefined) this.droppedEvents++;
        else this.pageRequested(address);
        break;
      case EventType.TCP:
        if (this.tcpEvent === undefined) this.droppedEvents++;
        else this.tcpEvent(address);
        break;
      case EventType.PORT_MNG_CHG_EVENT:
        this.portManagement(address);
        break;
      default:
        this.queueEvent(type, address);
    }
  }

  /** Events of QPs and SRQs; anything else is dropped. */
  private queueEvent(type: number, address: number): void {
    const qpEvent = qpEvents[type];
    const srqEvent = srqEvents[type];
    if (qpEvent !== undefined) {
      this.notify(this.qps.get(qpEqe.fields.qpn.get(this.memory.view, address)), qpEvent);
    } else if (srqEvent !== undefined) {
      this.notify(this.srqs.get(srqEqe.fields.srqn.get(this.memory.view, address)), srqEvent);
    } else {
      this.droppedEvents++;
    }
  }

  private completion(cqn: number): void {
    const sink = this.cqs.get(cqn);
    if (sink?.completion === undefined) this.droppedEvents++;
    else sink.completion();
  }

  private command(address: number): void {
    const { token, status, outParam } = commandEqe.fields;
    this.commandDone(
      token.get(this.memory.view, address),
      status.get(this.memory.view, address),
      outParam.getNumber(this.memory.view, address),
    );
  }

  private notify(sink: EventSink | undefined, type: AsyncEventType): void {
    if (sink === undefined) this.droppedEvents++;
    else sink.asyncEvent(type);
  }

  private portChange(address: number): void {
    const isActive = eqe.fields.subtype.get(this.memory.view, address) === PortChange.ACTIVE;
    this.notifyPort(
      portChangeEqe.fields.port.get(this.memory.view, address),
      isActive ? AsyncEventType.IBV_EVENT_PORT_ACTIVE : AsyncEventType.IBV_EVENT_PORT_ERR,
    );
  }

  private portManagement(address: number): void {
    const port = portInfoChangeEqe.fields.port.get(this.memory.view, address);
    const subtype = eqe.fields.subtype.get(this.memory.view, address);
    if (subtype === PortManagementChange.GUID_INFO)
      this.notifyPort(port, AsyncEventType.IBV_EVENT_GID_CHANGE);
    if (subtype === PortManagementChange.PKEY_TABLE)
      this.notifyPort(port, AsyncEventType.IBV_EVENT_PKEY_CHANGE);
    if (subtype !== PortManagementChange.PORT_INFO) return;
    const changed = portInfoChangeEqe.fields.changed.get(this.memory.view, address);
    const has = (bit: number): boolean => (changed & bit) !== 0;
    if (has(PortInfoChange.SM_LID | PortInfoChange.SM_SL)) {
      this.notifyPort(port, AsyncEventType.IBV_EVENT_SM_CHANGE);
    }
    if (has(PortInfoChange.LID)) this.notifyPort(port, AsyncEventType.IBV_EVENT_LID_CHANGE);
    if (has(PortInfoChange.GID_PREFIX)) this.notifyPort(port, AsyncEventType.IBV_EVENT_GID_CHANGE);
    if (has(PortInfoChange.CLIENT_REREGISTER)) {
      this.notifyPort(port, AsyncEventType.IBV_EVENT_CLIENT_REREGISTER);
    }
  }

  private notifyPort(port: number, type: AsyncEventType): void {
    for (const listener of this.portListeners) listener(port, type);
  }
}
