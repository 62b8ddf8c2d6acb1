from sqlalchemy import BigInteger, Column, DateTime, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import declarative_base

Base = declarative_base()


class Session(Base):
    __tablename__ = "session"
    __table_args__ = (
        Index(
            "session_ttl",
            "last_seen",
            postgresql_where=text("ttl_index.expire_after_seconds(3600)"),
        ),
        Index(
            "session_doc_ttl",
            text("ttl_index.document_date(doc, VARIADIC ARRAY['meta'::text, 'createdAt'::text])"),
            postgresql_where=text("ttl_index.expire_after_seconds(86400)"),
        ),
    )
    id = Column(BigInteger, primary_key=True)
    last_seen = Column(DateTime(timezone=True))
    doc = Column(JSONB)
