/*
 * Mistakes of verbs programs in C, to be diagnosed by `hca guest --why` from the device alone (docs/how-to/why.md).
 *
 *     gcc -O2 -Wall -o verbs-mistakes verbs-mistakes.c -libverbs
 *     verbs-mistakes none | wrong-rkey | few-receives | unsignalled | never-polled
 *
 * Two queue pairs of one device are connected to each other, over the loopback plug of its port.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4096, MESSAGE = 64, SEND_WR = 16 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char *buffer;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static struct ibv_qp *create(struct ibv_cq *cq) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = SEND_WR, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
  };
  struct ibv_qp *qp = ibv_create_qp(pd, &init);
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
  };
  if (!qp) die("ibv_create_qp");
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) die("INIT");
  return qp;
}

static void connect_to(struct ibv_qp *qp, uint32_t peer, uint16_t lid) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.dlid = lid, .port_num = 1},
  };
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    die("RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 2;
  attr.rnr_retry = 2;
  attr.max_rd_atomic = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC))
    die("RTS");
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey, int flags) {
  struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = MESSAGE, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags}, *bad;
  wr.wr.rdma.remote_addr = (uintptr_t)buffer + BYTES / 2;
  wr.wr.rdma.rkey = rkey;
  return ibv_post_send(qp, &wr, &bad);
}

static void receive(struct ibv_qp *qp) {
  struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = MESSAGE, .lkey = mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  if (ibv_post_recv(qp, &wr, &bad)) die("ibv_post_recv");
}

static void take(struct ibv_cq *cq) {
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
    ;
  if (count < 0) die("ibv_poll_cq");
  printf("%s, vendor_err 0x%x\n", ibv_wc_status_str(wc.status), wc.vendor_err);
}

int main(int argc, char **argv) {
  const char *mistake = argc > 1 ? argv[1] : "none";
  int is_small = strcmp(mistake, "never-polled") == 0;
  struct ibv_device **devices = ibv_get_device_list(NULL);
  if (!devices || !devices[0] || !(context = ibv_open_device(devices[0]))) die("no device");
  struct ibv_port_attr port;
  if (ibv_query_port(context, 1, &port)) die("ibv_query_port");
  if (posix_memalign((void **)&buffer, 4096, BYTES)) die("memory");
  pd = ibv_alloc_pd(context);
  mr = ibv_reg_mr(pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  struct ibv_cq *cq = ibv_create_cq(context, is_small ? 3 : 64, NULL, NULL, 0);
  struct ibv_cq *far_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  if (!pd || !mr || !cq || !far_cq) die("objects");
  struct ibv_qp *qp = create(cq), *peer = create(far_cq);
  receive(peer);
  connect_to(qp, peer->qp_num, port.lid);
  connect_to(peer, qp->qp_num, port.lid);
  printf("%s: QP 0x%x, peer QP 0x%x\n", mistake, qp->qp_num, peer->qp_num);

  if (strcmp(mistake, "none") == 0) {
    if (post(qp, IBV_WR_RDMA_WRITE, mr->rkey, IBV_SEND_SIGNALED)) die("ibv_post_send");
    take(cq);
  } else if (strcmp(mistake, "wrong-rkey") == 0) {
    if (post(qp, IBV_WR_RDMA_WRITE, mr->rkey + 0x10000, IBV_SEND_SIGNALED)) die("ibv_post_send");
    take(cq);
  } else if (strcmp(mistake, "few-receives") == 0) {
    for (int sent = 0; sent < 2; sent++) {
      if (post(qp, IBV_WR_SEND, 0, IBV_SEND_SIGNALED)) die("ibv_post_send");
      take(cq);
    }
  } else if (strcmp(mistake, "unsignalled") == 0) {
    int posted = 0, error;
    while ((error = post(qp, IBV_WR_RDMA_WRITE, mr->rkey, 0)) == 0) {
      posted++;
      usleep(1000);
    }
    printf("request %d: %s\n", posted + 1, strerror(error));
  } else if (is_small) {
    for (int posted = 0; posted < SEND_WR; posted++)
      if (post(qp, IBV_WR_RDMA_WRITE, mr->rkey, IBV_SEND_SIGNALED)) die("ibv_post_send");
    sleep(1);
  } else {
    fprintf(stderr, "no mistake of this name\n");
    return 2;
  }
  return 0;
}
