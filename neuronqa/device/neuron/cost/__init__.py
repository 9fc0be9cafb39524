"""What work would cost on the hardware of a profile. Everything here is modelled from published figures."""
