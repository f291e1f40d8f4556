"""Descriptions of the families of reference values, with their sources, for the page of results."""

from collections.abc import Mapping

__all__ = ["DESCRIPTIONS"]

DESCRIPTIONS: Mapping[str, str] = {
    # suppression
    "nack_backoff_fn": (
        "The random back-off (RFC 5401 3.2.2) in seconds for a group of G receivers and at most T seconds: its value for "
        "a uniform number u, and mean and variance."
    ),
    "nack_count": (
        "NACKs sent for one loss that all G receivers detect at the same instant, with back-off factor K and multicast "
        "NACKs that reach the others after half a GRTT."
    ),
    "nack_count_delay": "As `nack_count`, where a NACK reaches the others after d GRTT.",
    "nack_count_subset": "As `nack_count`, where only n of the G receivers lose the packet.",
    "nack_count_unicast": (
        "As `nack_count`, where NACKs go to the sender, which repeats them to all: they reach the others after one GRTT."
    ),
    "nack_latency": "Time from the detection of a loss by all G receivers to the first NACK, in GRTT.",
    "nack_latency_subset": "As `nack_latency`, where only n of the G receivers lose the packet.",
    # congestion
    "cc_feedback_count": (
        "Feedback messages of n receivers with equal rates after one probe, where one reaches the others after d GRTT "
        "(RFC 4654 2.5, with the back-off of RFC 5401)."
    ),
    "tfrc_eq": (
        "The rate of a TCP with segments of s bytes at a round-trip time of R seconds and a loss event rate p (RFC 5348 3.1)."
    ),
    "wali": "The average loss interval in packets, and the loss event rate (RFC 5348 5.4).",
    "norm_quantise": "Codes of round-trip times and rates on the wire, and the values they stand for (RFC 5740 4.2.1).",
    # arq
    "arq_nofec": "Transmissions of a packet until all R receivers have it, with independent loss p and no code (N2).",
    "arq_shared_loss": "As `arq_nofec`, with a loss on the shared first link and one on each receiver's own link.",
    "arq_rounds": (
        "Rounds of transmission until R receivers have all of k packets, where each round repeats what anybody lacks."
    ),
    "goodput_arq": "Share of first transmissions among all transmissions, with R receivers and loss p.",
    "tkp_counts": (
        "Control messages for each packet of protocols A, N1 and N2 (Towsley, Kurose, Pingali 1997), with R receivers."
    ),
    "tkp_throughput": (
        "Processing time for each packet at sender and receiver of A, N1 and N2, and the throughput it allows: the "
        "numbers of operations counted in runs, times the costs of the reference."
    ),
    # coding
    "fec_integrated_inf": (
        "Transmissions for each packet of a block of k until R receivers have it, repaired by as many parity packets as "
        "are requested (Nonnenmacher, Biersack, Towsley 1998)."
    ),
    "fec_integrated_proactive": "As `fec_integrated_inf`, with `a` parity packets sent with each block.",
    "fec_shared_loss": "As `fec_integrated_inf`, with a loss on the shared first link and one on each receiver's own link.",
    "fec_finite_first_block": (
        "As `fec_integrated_inf`, with n - k parity packets: the cost until they are used up, and the probability that "
        "some receiver lacks something then."
    ),
    "fec_residual": (
        "Loss of source packets behind a code of k in n on one link, and the probability that a block can't be decoded."
    ),
    "fec_layered": (
        "Transmissions for each packet, parity included, where every k packets have n - k parity packets and what can't "
        "be decoded is repeated."
    ),
    "srm_star": (
        "Requests for a loss next to the source in a star of G members, and the time to the first one, with C1 = 0 (Floyd"
        " et al. 1997); a member is one unit of time from the hub."
    ),
    # implosion
    "implosion_drop": (
        "Packets dropped when all G receivers answer at the same instant through a port with a queue of Q, and the delay "
        "of the last one accepted."
    ),
    # ethernet
    "eth_limit": (
        "Most UDP payload through Ethernet of 100 Mbit/s at an MTU of 1500, in datagrams of one size, and through a "
        "router that has one half-duplex port for both networks (802.1Q)."
    ),
    "fjm2_limit": "As `eth_limit`, for messages of FJM2, whose headers in the UDP payload have 52 bytes.",
    "fjm2_fec_cap": (
        "Messages of 64 KiB per second, and their rate, when the encoding of each takes as long as the thesis on FJM2 "
        "says (4.3.1); its own scale takes 200 messages per second for 100 Mbit/s."
    ),
    "fanout": "Goodput of multicast divided by that of a broker that sends N copies through the same link.",
    "overrun": "Loss of a host that gets packets faster than it processes them, with any finite buffer.",
    # channels
    "gilbert_elliott": (
        "Loss, mean length of losses and of gaps in a row, and autocorrelation at lags 1, 2, 5 and 10 of a Gilbert-"
        "Elliott channel."
    ),
    "ge_fec_block": "Probability that a Gilbert-Elliott channel loses more packets of a block than the block has parity.",
    "fragment_loss": "Loss of a UDP datagram that is sent as IP fragments, of which each is lost with probability p.",
    # queues
    "mm1": "Mean wait in service times at a link with Poisson arrivals and exponential sizes (M/M/1) at load rho.",
    "md1": "As `mm1`, with packets of one size (M/D/1).",
    "mm1k": "M/M/1 with room for K packets, the one in service included: dropped share, and mean number of packets.",
    "md1k": "M/D/1 with room for K packets: dropped share, mean number of packets, mean wait of those accepted.",
    "token_bucket": "Times in seconds at which a full token bucket lets the packets of a burst through.",
    # connections
    "tcp_reno": "Mean window in segments of Reno when every (1/p)-th segment is lost (Mathis et al. 1997).",
    "tcp_cubic": "As `tcp_reno`, for CUBIC (RFC 9438 5.1).",
    "tcp_capacity": "Goodput of one TCP connection over Ethernet of 100 Mbit/s.",
    "tcp_share": "Least and largest share of four TCP connections through one drop-tail queue.",
    # distributor
    "subject_match": "Whether a subscription of the Distributor matches a subject (1: yes), and which of several do.",
    "subject_publish": "Whether a subject may be published (1: yes).",
    "nagging": "Number of the check window at which a subscriber that requests all the time is ended.",
    "server_holdback": (
        "Times in milliseconds of retransmissions, for requests of one segment during the publisher's hold-back."
    ),
    "rtx_cache": "Segments that a publisher retransmits from its cache, and those it refuses.",
    "rate_limit": "Rate in Mbit/s of a publisher with a configured limit, which is 0.25 at least.",
}
