/** The enumerations of librdmacm, name by name with their numbers. Source: librdmacm rdma_cma.h. */
import { RdmaCmEventType, RdmaPortSpace } from '../driver/index.ts';

export const {
  RDMA_CM_EVENT_ADDR_RESOLVED,
  RDMA_CM_EVENT_ADDR_ERROR,
  RDMA_CM_EVENT_ROUTE_RESOLVED,
  RDMA_CM_EVENT_ROUTE_ERROR,
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_CONNECT_RESPONSE,
  RDMA_CM_EVENT_CONNECT_ERROR,
  RDMA_CM_EVENT_UNREACHABLE,
  RDMA_CM_EVENT_REJECTED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_CM_EVENT_DISCONNECTED,
  RDMA_CM_EVENT_DEVICE_REMOVAL,
  RDMA_CM_EVENT_TIMEWAIT_EXIT,
} = RdmaCmEventType;
export const { RDMA_PS_TCP } = RdmaPortSpace;
