/*
 * A driver of the command register (HCR) alone, with races to find: no other driver may have the adapter. RACE chooses the race, FIXED its
 * correction. Loading it fails with EIO when the race has struck.
 *
 *   1  rings before the mailbox is written, the order that a compiler may choose where no barrier is
 *   2  reads the result before it reads who owns the register
 *   3  gives its buffer away after a fixed time, without waiting for the end of the command
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>

#define HCR_OFFSET 0x80680
#define STATUS 0x18
#define GO (1u << 23)
#define TOGGLE (1u << 21)
#define QUERY_FW 0x004
#define MAP_FA 0xfff
#define UNMAP_FA 0xffe
#define ROUNDS 60
/* The mailbox of MAP_FA: so many parts of the area. */
#define ENTRIES 8
#define ENTRY_ORDER 3
#define AREA_ORDER 6

static u8 __iomem *hcr;
static u32 toggle = 1;
static __be32 *box;
static dma_addr_t box_dma;
static void *area;
static dma_addr_t area_dma;

/* By the clock: udelay() is calibrated by what the kernel's command line says. */
static void pause_ns(u64 ns)
{
	u64 until = ktime_get_ns() + ns;

	while (ktime_get_ns() < until)
		cpu_relax();
}

static bool is_pending(u32 sent)
{
	u32 status = ioread32be(hcr + STATUS);

	return (status & GO) || (sent == !!(status & TOGGLE));
}

static void put(u64 in, u32 modifier, u64 out)
{
	iowrite32be(upper_32_bits(in), hcr);
	iowrite32be(lower_32_bits(in), hcr + 4);
	iowrite32be(modifier, hcr + 8);
	iowrite32be(upper_32_bits(out), hcr + 12);
	iowrite32be(lower_32_bits(out), hcr + 16);
	iowrite32be(0, hcr + 20);
}

static void ring(u32 opcode)
{
	__raw_writel(cpu_to_be32(GO | (toggle ? TOGGLE : 0) | opcode), hcr + STATUS);
	toggle ^= 1;
}

static int finish(void)
{
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		if (!is_pending(toggle))
			return ioread32be(hcr + STATUS) >> 24;
		udelay(1);
	}
	return -ETIMEDOUT;
}

static int command(u64 in, u32 modifier, u64 out, u32 opcode)
{
	put(in, modifier, out);
	wmb();
	ring(opcode);
	return finish();
}

static void fill(void)
{
	int entry;

	for (entry = 0; entry < ENTRIES; entry++) {
		u64 address = area_dma + entry * (PAGE_SIZE << ENTRY_ORDER);

		box[4 * entry] = 0;
		box[4 * entry + 1] = 0;
		box[4 * entry + 2] = cpu_to_be32(upper_32_bits(address));
		box[4 * entry + 3] = cpu_to_be32(lower_32_bits(address) | ENTRY_ORDER);
	}
}

/* The mailbox of MAP_FA. */
static bool strikes_1(void)
{
	int status;

	memset(box, 0xff, 16 * ENTRIES);
	put(box_dma, ENTRIES, 0);
#ifdef FIXED
	fill();
	wmb();
	ring(MAP_FA);
#else
	ring(MAP_FA);
	fill();
#endif
	status = finish();
	if (status == 0)
		command(0, 0, 0, UNMAP_FA);
	return status != 0;
}

/* The result of QUERY_FW. */
static bool strikes_2(u32 expected)
{
	u32 value;
	bool pending;

	WRITE_ONCE(box[0], 0xffffffff);
	put(0, 0, box_dma);
	wmb();
	ring(QUERY_FW);
	do {
		pause_ns(WAIT_NS);
#ifdef FIXED
		pending = is_pending(toggle);
		rmb();
		value = READ_ONCE(box[0]);
#else
		value = READ_ONCE(box[0]);
		rmb();
		pending = is_pending(toggle);
#endif
	} while (pending);
	return value != expected;
}

/* The buffer of QUERY_FW has another owner, who finds it changed. */
static bool strikes_3(void)
{
	const u32 mine = 0x5a5a5a5a;

	put(0, 0, box_dma);
	wmb();
	ring(QUERY_FW);
#ifdef FIXED
	finish();
#else
	pause_ns(WAIT_NS);
#endif
	WRITE_ONCE(box[0], mine);
	finish();
	return READ_ONCE(box[0]) != mine;
}

static int run(struct pci_dev *pdev)
{
	u64 began, took;
	u32 expected;
	int round;

	began = ktime_get_ns();
	if (command(0, 0, box_dma, QUERY_FW) != 0)
		return -EIO;
	took = ktime_get_ns() - began;
	expected = box[0];
	for (round = 1; round <= ROUNDS; round++) {
		bool strikes = RACE == 1 ? strikes_1() : RACE == 2 ? strikes_2(expected) : strikes_3();

		if (strikes) {
			pr_err("race %d: struck in round %d at %llu ns\n", RACE, round, ktime_get_ns());
			return -EIO;
		}
	}
	pr_info("race %d: %d rounds, a command takes %llu ns\n", RACE, ROUNDS, took);
	return 0;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	void __iomem *bar;
	int error = pci_enable_device(pdev);

	if (error)
		return error;
	pci_set_master(pdev);
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(32));
	bar = pci_iomap(pdev, 0, 0);
	box = dma_alloc_coherent(&pdev->dev, PAGE_SIZE, &box_dma, GFP_KERNEL);
	area = dma_alloc_coherent(&pdev->dev, PAGE_SIZE << AREA_ORDER, &area_dma, GFP_KERNEL);
	if (!error && bar && box && area) {
		hcr = (u8 __iomem *)bar + HCR_OFFSET;
		error = run(pdev);
	} else {
		error = -ENOMEM;
	}
	if (area)
		dma_free_coherent(&pdev->dev, PAGE_SIZE << AREA_ORDER, area, area_dma);
	if (box)
		dma_free_coherent(&pdev->dev, PAGE_SIZE, box, box_dma);
	if (bar)
		pci_iounmap(pdev, bar);
	pci_clear_master(pdev);
	pci_disable_device(pdev);
	return error;
}

static int __init race_init(void)
{
	struct pci_dev *pdev = pci_get_device(0x15b3, 0x1003, NULL);
	int error = pdev ? probe(pdev, NULL) : -ENODEV;

	pci_dev_put(pdev);
	return error;
}

static void __exit race_exit(void)
{
}

module_init(race_init);
module_exit(race_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Races of a driver, to be found");
