/** Operations by the names that the standard gives them. */
export {
  IBV_WR_ATOMIC_FETCH_AND_ADD as ADD,
  IBV_WR_RDMA_READ as READ,
  IBV_WR_RDMA_WRITE as WRITE,
  IBV_WR_SEND as SEND,
} from '../../../userlib/index.ts';
