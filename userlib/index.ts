export type {
  AhAttr,
  AsyncEventType,
  DeviceAttr,
  GidEntry,
  GidTypeVerb,
  GlobalRoute,
  LinkLayerVerb,
  NodeTypeVerb,
  PortAttr,
  QpAttr,
  QpCap,
  RdmaCmEventType,
  RdmaConnParam,
  RdmaPortSpace,
  SocketAddress,
  SrqAttr,
  SrqTypeVerb,
  TransportVerb,
} from '../driver/index.ts';
export { createAhFromWc, initAhFromWc } from './ah-from-wc.ts';
export { bindMw } from './bind-mw.ts';
export * from './constants.ts';
export { queryRtValuesEx } from './core-clock.ts';
export { createCompChannel, createCq, destroyCompChannel, destroyCq, modifyCq, resizeCq } from './cq.ts';
export {
  createCqEx,
  endPoll,
  type IbvCqInitAttrEx,
  nextPoll,
  startPoll,
  wcReadByteLen,
  wcReadCompletionTs,
  wcReadDlidPathBits,
  wcReadImmData,
  wcReadInvalidatedRkey,
  wcReadOpcode,
  wcReadQpNum,
  wcReadSl,
  wcReadSlid,
  wcReadSrcQp,
  wcReadVendorErr,
  wcReadWcFlags,
} from './cq-ex.ts';
export {
  closeDevice,
  type DeviceAttrEx,
  getDeviceList,
  getDeviceName,
  getPkeyIndex,
  openDevice,
  queryDevice,
  queryDeviceEx,
  queryGid,
  queryGidTable,
  queryPkey,
  queryPort,
  smSetPkeys,
} from './device.ts';
export {
  ackAsyncEvent,
  ackCqEvents,
  eventTypeStr,
  getAsyncEvent,
  getCqEvent,
  type IbvAsyncEvent,
} from './events.ts';
export {
  allocMw,
  allocPd,
  createAh,
  deallocMw,
  deallocPd,
  deregMr,
  destroyAh,
  incRkey,
  regMr,
  reregMr,
} from './memory.ts';
export { attachMcast, detachMcast } from './multicast.ts';
export {
  type BadWr,
  type IbvAh,
  type IbvCompChannel,
  type IbvContext,
  type IbvCq,
  type IbvCqEx,
  type IbvDevice,
  type IbvMr,
  type IbvMw,
  type IbvMwBind,
  type IbvMwBindInfo,
  type IbvPd,
  type IbvQp,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSge,
  type IbvSrq,
  type IbvTargetQp,
  type IbvValuesEx,
  IbvWc,
  type IbvXrcd,
} from './objects.ts';
export type * from './platform.ts';
export { pollCq, pollSettled, reqNotifyCq, spinCq } from './poll-cq.ts';
export { postRecv, postSrqRecv } from './post-recv.ts';
export { postSend } from './post-send.ts';
export { createQp, destroyQp, type IbvQpInitAttr, modifyQp, queryQp } from './qp.ts';
export * from './rdma-cm.ts';
export * from './rdma-constants.ts';
export { createSrq, destroySrq, type IbvSrqInitAttr, modifySrq, querySrq } from './srq.ts';
export * from './verbs-error.ts';
export {
  closeXrcd,
  createQpEx,
  createSrqEx,
  getSrqNum,
  type IbvQpInitAttrEx,
  type IbvQpOpenAttr,
  type IbvSrqInitAttrEx,
  type IbvTargetQpInitAttr,
  type IbvXrcdInitAttr,
  openQp,
  openXrcd,
} from './xrc.ts';
