/*
 * A consumer of the verbs of the kernel: RDMA WRITEs to itself, each of whose completions an event reports. RACE chooses the race, FIXED its
 * correction. Loading it fails with EIO when the race has struck.
 *
 *   4  arms the CQ after it has polled, and sleeps without looking again
 *   5  forgets an event: clears what the interrupt's handler has set after it has handled it
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#define ROUNDS 100
/* A completion takes some microseconds; its event is lost if it has not come after this. */
#define PATIENCE (HZ / 10)

static struct ib_device *device;
static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_qp *qp;
static struct task_struct *sleeper;
static DECLARE_WAIT_QUEUE_HEAD(events);
static int event;

static void completed(struct ib_cq *of, void *context)
{
	WRITE_ONCE(event, 1);
	if (RACE == 4)
		wake_up_process(sleeper);
	else
		wake_up(&events);
}

static int post(void)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .send_flags = IB_SEND_SIGNALED },
	};

	return ib_post_send(qp, &wr.wr, NULL);
}

static int drain(void)
{
	struct ib_wc wc;
	int count = 0;

	while (ib_poll_cq(cq, 1, &wc) == 1)
		count++;
	return count;
}

/* Sleeps until the handler wakes it. */
static bool strikes_4(void)
{
	long left = PATIENCE;

	post();
#ifdef FIXED
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
		if (drain() > 0 || left == 0)
			break;
		left = schedule_timeout(left);
	}
	__set_current_state(TASK_RUNNING);
#else
	if (drain() == 0) {
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
		set_current_state(TASK_INTERRUPTIBLE);
		left = schedule_timeout(left);
		drain();
	}
#endif
	return left == 0;
}

/* Two WRITEs, the second as the first is handled; each has its event. */
static bool strikes_5(void)
{
	int handled = 0;

	event = 0;
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	post();
	while (handled < 2) {
		if (wait_event_timeout(events, READ_ONCE(event), PATIENCE) == 0)
			return true;
#ifdef FIXED
		WRITE_ONCE(event, 0);
#endif
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
		if (handled == 0)
			post();
		handled += drain();
#ifndef FIXED
		WRITE_ONCE(event, 0);
#endif
	}
	return false;
}

static int connect(void)
{
	struct ib_port_attr port;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1,
				   .qp_access_flags = IB_ACCESS_REMOTE_WRITE };
	int error = ib_query_port(device, 1, &port);

	if (error)
		return error;
	error = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (error)
		return error;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = IB_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&attr.ah_attr, port.lid);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	error = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (error)
		return error;
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int run(void)
{
	int round;

	for (round = 1; round <= ROUNDS; round++) {
		if (RACE == 4 ? strikes_4() : strikes_5()) {
			pr_err("race %d: struck in round %d at %llu ns\n", RACE, round, ktime_get_ns());
			return -EIO;
		}
	}
	pr_info("race %d: %d rounds\n", RACE, ROUNDS);
	return 0;
}

static int found(struct ib_device *each)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 64 };
	struct ib_qp_init_attr qp_attr = { .qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
					   .cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	int error;

	device = each;
	sleeper = current;
	pd = ib_alloc_pd(device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	cq = ib_create_cq(device, completed, NULL, NULL, &cq_attr);
	error = PTR_ERR_OR_ZERO(cq);
	if (error)
		goto no_cq;
	qp_attr.send_cq = cq;
	qp_attr.recv_cq = cq;
	qp = ib_create_qp(pd, &qp_attr);
	error = PTR_ERR_OR_ZERO(qp);
	if (error)
		goto no_qp;
	error = connect();
	if (!error)
		error = run();
	ib_destroy_qp(qp);
no_qp:
	ib_destroy_cq(cq);
no_cq:
	ib_dealloc_pd(pd);
	return error;
}

static int result = -ENODEV;

static int add_one(struct ib_device *each)
{
	if (!device)
		result = found(each);
	return 0;
}

static struct ib_client client = { .name = "race", .add = add_one };

static int __init race_init(void)
{
	int error = ib_register_client(&client);

	if (error)
		return error;
	if (result)
		ib_unregister_client(&client);
	return result;
}

static void __exit race_exit(void)
{
	ib_unregister_client(&client);
}

module_init(race_init);
module_exit(race_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Races of a consumer of verbs, to be found");
